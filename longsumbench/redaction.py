"""Removes secrets from texts: keys of servers, however they are written, and passwords in addresses.

`redact` is for messages and logs, `remove_key` for what a server answers.
"""

import base64
import re
from functools import cache
from string import ascii_lowercase, ascii_uppercase
from urllib.parse import unquote
from urllib.request import getproxies

# Characters; a shorter key ("EMPTY", "ollama") is a placeholder, which an answer may contain.
SHORTEST_KEY = 12
_PART = 5  # characters of a key or a proxy's password that no message has in a row
_keys = set[str]()

# A password in an address, a key in its query, a key that a server shortened.
_SECRET = re.compile(
    r"(?<=://)(?:[^\s/@]*:[^\s'\"]*|[^\s/?#@]+)@"
    r"|(?<=[?&#;])[\w.-]*(?:key|token|secret|password|passwd|pwd|sig|signature|auth)=[^\s&#;'\"]+"
    r"|(?<![\w-])(?:[\w-]*(?:\*{3,}|•{3,})[\w-]*|(?:sk|pk|hf|gsk|xai|aiza|key)[\w-]*(?:\.{3}|…)[\w-]+)",
    re.IGNORECASE,
)
_PROXY_PASSWORD = re.compile(r"(?:\w+://)?[^:@]*:(.+)@")
# Escapes of JSON, URLs and HTML: hexadecimal, decimal, or of a blank.
_ESCAPE = (
    r"(?:\\+(?:u00|x)|%(?:25)*|&(?:amp;)?#x0*)([0-9a-f]{2});?|&(?:amp;)?#0*(\d{2,3});?|\\+[nrt]"
)
_UNIT = re.compile(f"{_ESCAPE}|.", re.IGNORECASE | re.DOTALL)
_NOTHING = "\0"  # in place of what may be inside a key
# To one case and one alphabet of Base64.
_PLAIN = str.maketrans(ascii_uppercase + "-_ \t\r\n\\", ascii_lowercase + "+/" + 5 * _NOTHING)


def hide_key(key: str) -> None:
    """Let `redact` remove a key from now on, unless it is a placeholder."""
    if len(key) >= SHORTEST_KEY:
        _keys.add(key)


def redact(text: str) -> str:
    """Return a message without keys, parts of keys, and passwords."""
    text = _SECRET.sub("<secret>", text)
    for address in getproxies().values():
        if proxy := _PROXY_PASSWORD.match(address):
            text = remove_key(text, unquote(proxy[1]))
    for key in _keys:
        text = remove_key(text, key)
    return text


def remove_key(text: str, key: str, shortest: int = _PART) -> str:
    """Replace each part of a key by "<key>": plain, hexadecimal or Base64, with escapes, and over line ends.

    Args:
        text: any text.
        key: the key; its case does not matter.
        shortest: characters of a part that is replaced; a shorter key stays.
    """
    if len(key) < shortest:
        return text
    parts = _key_parts(key, shortest)
    units = [match[0] for match in _UNIT.finditer(text)]
    characters = "".join(map(_unescape, units)).translate(_PLAIN)
    places = [place for place, character in enumerate(characters) if character != _NOTHING]
    plain = characters.replace(_NOTHING, "")
    hidden = set[int]()
    for start in range(len(plain) - shortest + 1):
        if plain[start : start + shortest] in parts:
            hidden.update(range(places[start], places[start + shortest - 1] + 1))
    for place in hidden:
        units[place] = _NOTHING
    return re.sub(f"{_NOTHING}+", "<key>", "".join(units)) if hidden else text


@cache
def _key_parts(key: str, length: int) -> set[str]:
    """Return the parts of a key that have a length, in each spelling."""
    content = key.encode()
    spellings = [key, content.hex()]
    for shift in range(3):  # In Base64, a key looks different after 0, 1 or 2 other bytes.
        spellings.append(base64.b64encode(bytes(shift) + content).decode())
    parts = set()
    for spelling in spellings:
        plain = spelling.translate(_PLAIN)
        for start in range(len(plain) - length + 1):
            parts.add(plain[start : start + length])
    return parts


def _unescape(unit: str) -> str:
    """Return the character that a unit of a text means."""
    match = _UNIT.match(unit)
    if match is None or len(unit) == 1:
        return unit
    hexadecimal, decimal = match.groups()
    return chr(int(hexadecimal, 16) if hexadecimal else int(decimal or 0))
