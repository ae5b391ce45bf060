# The suite with the packages of constraints.txt. It runs in /work, where results are written.
#   docker build -t longsumbench .
#   docker run --rm -v "$PWD:/work" longsumbench run
# For a GPU (and then docker run --gpus all):
#   docker build -t longsumbench --build-arg BASE=nvidia/cuda:12.8.1-base-ubuntu24.04 --build-arg INDEX=https://pypi.org/simple .
ARG BASE=python:3.11-slim
FROM ${BASE}

# Where PyTorch comes from: its build for the CPU here, that with CUDA from PyPI.
ARG INDEX=https://download.pytorch.org/whl/cpu
# Extras of pyproject.toml: EXTRAS=[all]
ARG EXTRAS=

# Images of CUDA have no Python.
RUN command -v python3 || (apt-get update && apt-get install -y --no-install-recommends python3-venv \
 && rm -rf /var/lib/apt/lists/*)
RUN useradd --create-home longsumbench && install -d -o longsumbench /work
COPY . /src
RUN python3 -m venv /opt/venv
RUN /opt/venv/bin/pip install --no-cache-dir --extra-index-url ${INDEX} -c /src/constraints.txt "/src${EXTRAS}"

ENV PATH=/opt/venv/bin:${PATH}
USER longsumbench
WORKDIR /work
ENTRYPOINT ["longsumbench"]
