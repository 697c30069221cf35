"""A hash of Python syntax that formatters cannot change.

The text becomes a list of tokens without comments, docstrings, blank lines, line breaks inside
brackets, trailing commas and redundant parentheses; strings are compared by value and indentation
by depth. Tokens come from one regular expression: ``ast`` and ``tokenize`` need several times as
long and refuse broken text.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""\#[^\n]*|\\\r?\n|
    [rRbBuUfFtT]{0,2}(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}
        |"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|
    [^\W\d]\w*|
    \n[ \t]*|
    0[xXoObB]\w+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d[\d_]*)?\w*|
    \*\*=?|//=?|>>=?|<<=?|->|:=|[-+*/%@&|^=<>!]=|
    [^\s\w]""",
    re.S | re.X,
)
_BARE_POINT = re.compile(r"\.(?!\d)")
_NEWLINE, _INDENT, _DEDENT = "\n", "\n>", "\n<"
_LAYOUT = frozenset({_NEWLINE, _INDENT, _DEDENT})
_FOR_IN = "for in"
"""The ``in`` of a loop or comprehension, as opposed to the membership operator."""
# fmt: off
_KEYWORDS = frozenset((
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif",
    "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda",
    "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
    "True", "False", "None",
))
_COMPOUND = frozenset((
    "if", "elif", "else", "for", "while", "try", "except", "finally", "with", "def", "class",
    "async",
))
_BEFORE = frozenset((
    "=", "+=", "-=", "*=", "/=", "//=", "%=", "@=", "&=", "|=", "^=", ">>=", "<<=", "**=", "(",
    "[", ",", ":", "->", "return", "if", "elif", "while", "assert", "del", "with", "for", "yield",
    "import", "raise", "from", "except", _FOR_IN,
))
"""Tokens after which a parenthesis groups and nothing binds to its left."""
_AFTER = frozenset((")", "]", "}", ",", ":", "=", "as", *_LAYOUT))
"""Tokens before which nothing binds to the right of a closed group."""
_TUPLE_BEFORE = frozenset(
    ("=", "+=", "return", "yield", "with", "del", "import", "except", _FOR_IN)
)
_PLAIN = frozenset((
    ".", ",", "+", "-", "*", "/", "%", "@", "&", "|", "^", "~", "<", ">", "**", "//", ">>", "<<",
    "==", "!=", "<=", ">=",
))
"""Operators that change nothing but the output."""
_BINDING = frozenset(("def", "async", "class", "global", "import", "from", "as", "lambda"))
"""Words that begin a line or stand before a name that is bound."""
# fmt: on
_COMMA_OPTIONAL = frozenset({"import", "with", "del"})
_CACHED_DEFINITIONS = 4096
"""Some thousand definitions of a kilobyte each: a few megabytes."""


@dataclass(frozen=True, slots=True)
class Digest:
    """Hash of a definition's syntax and the names it reads but does not bind itself."""

    hash: str
    names: frozenset[str]


@functools.lru_cache(_CACHED_DEFINITIONS)
def syntax_digest(text: str) -> Digest:
    """Digest of whole lines of Python, wherever they stand and however they are formatted."""
    tokens, names = canonical_tokens(text)
    return Digest(hashlib.sha256("\x00".join(tokens).encode(errors="replace")).hexdigest(), names)


def canonical_tokens(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """The tokens that count, and the names that are read but not bound."""
    reader = _Reader()
    reader.read(_TOKEN.findall("\n" + text))
    names = reader.names
    free = names.read - (names.bound - names.declared_global)
    return tuple(token for token in reader.out if token), frozenset(free)


@dataclass(slots=True)
class _Bracket:
    """An open bracket: where it stands in the output and what was seen inside it."""

    sign: str
    index: int
    before: str
    callee: bool
    commas: int = 0
    keep: bool = False

    def redundant(self, follower: str, depth: int) -> bool:
        """True if the parentheses say nothing between their surroundings."""
        if self.before in _LAYOUT:
            return follower == "=" or follower in _LAYOUT
        if self.before == "for" and follower == "in":
            return True
        if self.commas == 0:
            return self.before in _BEFORE and follower in _AFTER
        if depth or self.before not in _TUPLE_BEFORE:
            return False
        opens_block = follower == ":" and self.before in (_FOR_IN, "with")
        chained = follower == "=" and self.before == "="
        return follower in _LAYOUT or opens_block or chained


@dataclass(slots=True)
class _Names:
    """Names read and bound, in one pass. A name is judged when its follower is known."""

    read: set[str] = field(default_factory=set[str])
    bound: set[str] = field(default_factory=set[str])
    declared_global: set[str] = field(default_factory=set[str])
    last: str = ""
    targets: list[str] = field(default_factory=list[str])

    def follow(self, token: str, depth: int) -> None:
        """Judge the last name by the token after it."""
        last = self.last
        if last:
            self.last = ""
            if not (token == "=" and depth):
                self.read.add(last)
            if token in (".", "[", "(") and self.targets and self.targets[-1] == last:
                self.targets.pop()
        if token == "=" and not depth:
            self.bound.update(self.targets)
            self.targets.clear()


@dataclass(slots=True)
class _Reader:
    """State of one pass over the tokens."""

    out: list[str] = field(default_factory=list[str])
    names: _Names = field(default_factory=_Names)
    brackets: list[_Bracket] = field(default_factory=list[_Bracket])
    closed: _Bracket | None = None
    """The group whose closing parenthesis is the last token of ``out``."""
    indents: list[int] = field(default_factory=list[int])
    virtual_blocks: int = 0
    """Blocks that begin on the line of their header."""
    lambdas: list[int] = field(default_factory=list[int])
    loops: list[int] = field(default_factory=list[int])
    strings: list[str] = field(default_factory=list[str])
    previous: str = _NEWLINE
    first: str = ""
    line_ended: bool = True
    indent: int = 0
    soft: bool = False
    """The line ended in a semicolon: its indentation stays."""
    header_ended: bool = False
    calm: bool = False
    """Names and operators can be taken without further thought."""

    def read(self, tokens: list[str]) -> None:
        """Process all tokens."""
        for token in tokens:
            if self.calm and self._take_plain(token):
                continue
            head = token[0]
            if head == "\n":
                if not self.brackets:
                    self._end_line(len(token.expandtabs()) - 1)
                    self.calm = False
            elif head == "#" or head == "\\":
                continue
            elif token[-1] in "\"'" and len(token) > 1:
                if not self.strings:
                    self._begin(token)
                self.strings.append(token)
                self.calm = False
            else:
                if self.strings:
                    self._flush_strings(token)
                self._begin(token)
                if head.isalnum() or head == "_" or (head == "." and len(token) > 1):
                    self._word(token)
                else:
                    self._sign(token)
                self.calm = self._is_calm()
        self._end_line(0)
        self._settle(_NEWLINE)
        self.names.follow(_NEWLINE, 0)

    def _is_calm(self) -> bool:
        """True if names and operators need no thought: nothing is due, nothing is being bound."""
        return not (
            self.line_ended
            or self.header_ended
            or self.closed is not None
            or self.loops
            or self.lambdas
            or self.first in _BINDING
            or self.previous in _BINDING
        )

    def _take_plain(self, token: str) -> bool:
        """Take a name or an operator in the middle of a line: most tokens, so this is quick."""
        names = self.names
        if token in _PLAIN:
            if names.last:
                names.follow(token, 1)
            if token == "," and self.brackets:
                self.brackets[-1].commas += 1
        elif token.isidentifier() and token not in _KEYWORDS:
            if self.previous != ".":
                names.last = token
                if not self.brackets:
                    names.targets.append(token)
        else:
            return False
        self.out.append(token)
        self.previous = token
        return True

    def _end_line(self, indent: int) -> None:
        if self.strings:
            if self.previous in _LAYOUT:
                self.strings.clear()  # a docstring
            else:
                self._flush_strings(_NEWLINE)
        self.line_ended, self.soft, self.indent = True, False, indent

    def _begin(self, token: str) -> None:
        """Emit the layout that is due before a token."""
        if self.line_ended:
            self.line_ended = False
            self._layout(_NEWLINE)
            if not self.soft:
                for _ in range(self.virtual_blocks):
                    self._layout(_DEDENT)
                self.virtual_blocks = 0
                self._indentation()
            self.soft = self.header_ended = False
            self.first = token
        elif self.header_ended:
            self.header_ended = False
            self.virtual_blocks += 1
            self._layout(_NEWLINE)
            self._layout(_INDENT)
            self.first = token

    def _indentation(self) -> None:
        indents = self.indents
        if not indents:
            indents.append(self.indent)
        elif self.indent > indents[-1]:
            indents.append(self.indent)
            self._layout(_INDENT)
        while len(indents) > 1 and self.indent < indents[-1]:
            indents.pop()
            self._layout(_DEDENT)

    def _layout(self, token: str) -> None:
        self._settle(token)
        self.names.follow(token, 0)
        self.names.targets.clear()
        self.lambdas.clear()
        self.loops.clear()
        if token != _NEWLINE or self.previous not in _LAYOUT:
            self.out.append(token)
            self.previous = token

    def _settle(self, follower: str) -> None:
        """Drop the parentheses of the group just closed if they are redundant."""
        closed = self.closed
        if closed is not None:
            self.closed = None
            if closed.redundant(follower, len(self.brackets)):
                self.out[closed.index] = ""
                self.out[-1] = ""

    def _emit(self, token: str, text: str) -> None:
        if self.closed is not None:
            self._settle(token)
        self.out.append(text)
        self.previous = token

    def _word(self, token: str) -> None:
        depth, before, names = len(self.brackets), self.previous, self.names
        names.follow(token, depth)
        if token[0].isdigit() or token[0] == ".":
            self._emit(token, _number(token))
            return
        if token in _KEYWORDS:
            self._keyword(token, depth)
            return
        self._emit(token, token)
        if before == ".":
            return
        names.last = token
        if self.first == "global":
            names.declared_global.add(token)
        elif before in ("as", "import", "def", "class", "lambda") or self.loops:
            names.bound.add(token)
        elif depth == 0:
            names.targets.append(token)
        if (depth == 1 and self.first in ("def", "async") and before in ("(", ",", "*", "**")) or (
            self.lambdas and before in (",", "*", "**") and self.lambdas[-1] == depth
        ):
            names.bound.add(token)

    def _keyword(self, token: str, depth: int) -> None:
        kind = token
        if token == "for":
            self.loops.append(depth)
        elif token == "lambda":
            self.lambdas.append(depth)
        elif token == "in" and self.loops and self.loops[-1] == depth:
            self.loops.pop()
            kind = _FOR_IN
        if token in ("for", "yield") and self.brackets:
            self.brackets[-1].keep = True
        self._emit(token, token)
        self.previous = kind

    def _sign(self, token: str) -> None:
        depth = len(self.brackets)
        self.names.follow(token, depth)
        if token in "([{":
            self._open(token)
        elif token in ")]}" and self.brackets:
            self._close(token)
        elif token == ";" and not depth:
            self.line_ended = self.soft = True
        else:
            if token == ",":
                if depth:
                    self.brackets[-1].commas += 1
            elif token == ":=" and depth:
                self.brackets[-1].keep = True
            elif token == ":":
                self._colon(depth)
            self._emit(token, token)

    def _colon(self, depth: int) -> None:
        if self.lambdas and self.lambdas[-1] == depth:
            self.lambdas.pop()
        elif not depth and self.first in _COMPOUND:
            self.header_ended = True

    def _open(self, token: str) -> None:
        before = self.previous
        word = before[0].isalnum() or before[0] in "_\"'"
        callee = (word and before not in _KEYWORDS and before != _FOR_IN) or before in ")]}"
        self._emit(token, token)
        self.brackets.append(_Bracket(token, len(self.out) - 1, before, callee))

    def _close(self, token: str) -> None:
        bracket = self.brackets.pop()
        empty = bracket.index == len(self.out) - 1
        if self.previous == ",":
            single = bracket.commas == 1 and bracket.before not in _COMMA_OPTIONAL
            tuple_like = bracket.callee if bracket.sign == "[" else bracket.sign == "("
            if bracket.sign == "(" and bracket.callee:
                tuple_like = False
            if not (single and tuple_like):
                self.out[-1] = ""
                bracket.commas -= 1
        self._emit(token, token)
        if bracket.sign != "(" or bracket.keep:
            return
        if empty:
            if self.first == "class" and not self.brackets:
                self.out[-1] = self.out[-2] = ""
        elif not bracket.callee:
            self.closed = bracket

    def _flush_strings(self, follower: str) -> None:
        """Emit adjacent strings as one value."""
        raw, self.strings = self.strings, []
        self.names.follow('"', len(self.brackets))
        text, read = _string_value(" ".join(raw))
        self.names.read.update(read)
        self._emit('"', text)


def _number(token: str) -> str:
    """``.5``, ``1.`` and ``1E5`` as formatters write them."""
    text = token.lower()
    if "." in text:
        text = _BARE_POINT.sub(".0", "0" + text if text[0] == "." else text)
    return text


def _string_value(text: str) -> tuple[str, tuple[str, ...]]:
    """Canonical text of adjacent string literals, and the names that f-strings read."""
    quote = text[0]
    if quote in "\"'" and "\\" not in text and text.count(quote) == 2:
        return "s" + repr(text[1:-1]), ()
    try:
        node = ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError):
        return text, ()
    if isinstance(node, ast.Constant):
        return "s" + repr(node.value), ()
    names = tuple(item.id for item in ast.walk(node) if isinstance(item, ast.Name))
    return ast.dump(node), names
