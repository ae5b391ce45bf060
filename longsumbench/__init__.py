"""A unified benchmark suite for long-input summarizers."""

import os

import lazy_loader

__version__ = "0.2.0"
# The names of `__init__.pyi`; their modules are imported when they are first used, so that `import longsumbench` is quick.
_load_function, _, __all__ = lazy_loader.attach_stub(__name__, __file__)

# Waiting threads of OpenMP spin for less than a millisecond, then sleep. With libgomp's default of 300,000 spins,
# training next to other processes is several times as slow. OpenMP reads this once, when torch is imported. The user's
# own choice goes first.
if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"} & os.environ.keys():
    os.environ["GOMP_SPINCOUNT"] = "10000"


def __getattr__(name: str) -> object:
    if name in __all__:
        return _load_function(name)
    from longsumbench.core import registry

    # Python asks for many names, such as __path__, which no plug-in has
    if name.startswith("_") or name not in registry.functions.targets():
        raise AttributeError(f"module 'longsumbench' has no attribute '{name}'")
    return registry.functions.load(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
