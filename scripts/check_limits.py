"""Checks the limits of the house by machine: sizes, parameters, fields, inheritance, imports, names,
docstrings, and that no test bounds seconds.

Usage: ``python -m scripts.check_limits [ROOT]``. Prints each breach as ``file:line: what`` and exits 1 when
there is one. Each rule is a function over one source or over all of them; ``RULES`` and ``TREE_RULES`` list
them.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from scripts.prose import class_names, plain_words
from scripts.seconds import seconds
from scripts.source_tree import (
    Breach,
    Source,
    decorators,
    functions,
    imported,
    is_dunder,
    is_private,
    last_name,
    nodes,
    read_sources,
    resolve,
)

FILE_LINES = 400
FILE_LINES_HARD = 600
FUNCTION_LINES = 60
PARAMETERS = 8
PARAMETERS_HARD = 12
POSITIONAL = 2
FIELDS = 12
INHERITANCE = 1
INHERITANCE_OF_ERRORS = 3
LINE_FILES = {"session": 47, "client": 66}
LINE_FUNCTIONS = {"session": 243, "client": 380}
LINE_CALLS = {"session": 494, "client": 883}
LINE_STATE = 13
LINE_LINES = {"session": 9_060, "client": 12_590}
"""Limits of what one warm request passes (``bench/line.py``)."""
LOWER_FLOORS_LINES = 50_440
SOURCE_LINES = 71_860

LONG_FILES: dict[str, str] = {
    "src/lading/session/session.py": "one method for each thing that an agent's author does with a conversation"
}
"""Files that may have up to ``FILE_LINES_HARD`` lines, each with the reason why it is still one idea."""

_OPTIONS_OF_SESSIONS = "each option that users of a session often set is an argument of its own"
WIDE_FUNCTIONS: dict[str, str] = {
    "src/lading/clients/__init__.py:wrap": _OPTIONS_OF_SESSIONS,
    "src/lading/session/session.py:__init__": _OPTIONS_OF_SESSIONS,
}
"""Functions, as ``path:name``, that may have up to ``PARAMETERS_HARD`` parameters, each with the reason."""

AS_DOCUMENTED: dict[str, str] = {
    "src/lading/presets/reactive_agents/section_budget.py:allocate_budget": "the document gives four by position",
}
"""Public functions, as ``path:name``, whose third and later parameters need not be keyword-only, and why."""

GUARDS: dict[str, str] = {"src/lading/guard.py:attempt": "strategies and summarizers may be users' own code"}
"""The one function, as ``path:name``, that may catch everything around user callables, and why."""

BANNED_NAMES = frozenset(
    f"{name}{plural}"
    for name in ("util", "helper", "common", "base", "manager", "handler", "service", "misc")
    for plural in ("", "s")
)
UPPER_ROOMS = frozenset(
    "adapters agent catalogues cli clients evaluate exchange gateway report sources testing".split()  # noqa: SIM905
)
"""Rooms above floor 6."""
IMPORTING_ROOMS = frozenset({"adapters", "catalogues", "cli", "gateway", "wire"})
"""Rooms that may import inside a function."""
RIM_ROOMS = frozenset({"adapters", "cli", "clients", "exchange", "gateway"})
"""Rooms at the rim, which may catch everything: an agent must not stop because Lading does."""
PROVIDER_FIELDS = frozenset(
    """
    budget_tokens cache_control candidates choices completion_tokens finish_reason function_call
    function_call_output functionCall input_schema instructions max_completion_tokens max_output_tokens max_tokens
    messages openai_chat previous_response_id prompt_tokens reasoning_content stop_reason stream_options
    systemInstruction tool_call_id tool_calls tool_choice tool_result tool_use tool_use_id usage usageMetadata
    """.split()  # noqa: SIM905 - a list of words reads as words
)
"""Names of fields, kinds and formats by which one provider's bodies are told."""
FORMAT_READERS: dict[str, str] = {
    "wire": "knows the formats",
    "sources": "reads the files of other tools, whatever format they are in",
    "testing": "plays the providers, by its own reading of their formats",
    "cli": "names the fields of its own JSON and the columns of its tables",
    "src/lading/__init__.py": "`tool_result` is a function of ours",
    "src/lading/messages.py": "`tool_result` is the tag of our part",
    "src/lading/models/card.py": "`reasoning_content` is a value of a card's conduct",
    "src/lading/evaluate/layers.py": "`tool_calls` is the name of our layer",
    "src/lading/evaluate/evidence.py": "leaves out ids and kinds of whatever request it is given",
}
"""Rooms and files that may name them, each with the reason."""
OPTIONAL_PACKAGES = frozenset(
    """
    aiohttp jsonschema numpy obstore opentelemetry psycopg rapidfuzz redis referencing selectolax starlette
    tree_sitter uvicorn
    """.split()  # noqa: SIM905 - a list of words reads as words
)
"""Packages of the extras; a function may import them, because they need not be installed."""
ROOTLESS_BASES = frozenset({"object", "Protocol", "Generic"})
"""Bases that do not count as inheritance."""


def main(arguments: Sequence[str]) -> int:
    """Print the breaches below the root given (default: this checkout). Returns the exit code."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    found = breaches(root)
    for breach in found:
        print(breach)
    return 1 if found else 0


def breaches(root: Path) -> list[Breach]:
    """Everything below ``root`` that is over a limit, in order of file and line."""
    sources, found = read_sources(root)
    for source in sources:
        for rule in RULES:
            found.extend(rule(source))
    for tree_rule in TREE_RULES:
        found.extend(tree_rule(sources))
    return sorted(found)


def file_length(source: Source) -> Iterator[Breach]:
    """400 lines, 600 where the file is listed with a reason."""
    limit = FILE_LINES_HARD if source.path in LONG_FILES else FILE_LINES
    if source.lines > limit:
        yield Breach(source.path, source.lines, f"{source.lines} lines; a file has at most {limit}")
    if source.path in LONG_FILES and source.lines <= FILE_LINES:
        yield Breach(source.path, 1, "is listed as a long file but is not long; take it from LONG_FILES")


def function_length(source: Source) -> Iterator[Breach]:
    """60 lines from ``def`` to the end."""
    for place in functions(source.tree):
        node = place.function
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > FUNCTION_LINES:
            yield Breach(source.path, node.lineno, f"{node.name} has {length} lines; at most {FUNCTION_LINES}")


def parameter_count(source: Source) -> Iterator[Breach]:
    """8 parameters, 12 where it is listed with a reason; keyword-only after the second in public functions of
    ``src``."""
    for place in functions(source.tree):
        node = place.function
        positional = [*node.args.posonlyargs, *node.args.args][1 if place.is_method else 0 :]
        total = len(positional) + len(node.args.kwonlyargs)
        if place.is_command:
            continue
        limit = PARAMETERS_HARD if f"{source.path}:{node.name}" in WIDE_FUNCTIONS else PARAMETERS
        if total > limit:
            yield Breach(source.path, node.lineno, f"{node.name} has {total} parameters; at most {limit}")
        name = f"{source.path}:{node.name}"
        loose = source.module and place.is_public and not is_dunder(node.name) and name not in AS_DOCUMENTED
        if loose and len(positional) > POSITIONAL:
            names = ", ".join(argument.arg for argument in positional[POSITIONAL:])
            yield Breach(source.path, node.lineno, f"{node.name}: make {names} keyword-only")


def open_keywords(source: Source) -> Iterator[Breach]:
    """No ``**kwargs`` in public signatures of ``src``, but for an overload that names its keys in a typed dict."""
    for place in functions(source.tree):
        kwarg = place.function.args.kwarg
        is_closed = (
            kwarg and isinstance(kwarg.annotation, ast.Subscript) and last_name(kwarg.annotation.value) == "Unpack"
        )
        if source.module and place.is_public and kwarg and not is_closed:
            name = kwarg.arg
            yield Breach(source.path, place.function.lineno, f"{place.function.name} takes **{name}")


def field_count(source: Source) -> Iterator[Breach]:
    """12 fields in a value: a frozen Struct, a frozen dataclass, a named tuple or a typed dict.

    A mutable Struct or dataclass is no value but the state of a walk, which is as wide as what it follows.
    """
    for node in nodes(source.tree):
        if not isinstance(node, ast.ClassDef) or not is_value(node):
            continue
        fields = [
            item
            for item in node.body
            if isinstance(item, ast.AnnAssign) and "ClassVar" not in ast.unparse(item.annotation)
        ]
        if len(fields) > FIELDS:
            yield Breach(source.path, node.lineno, f"{node.name} has {len(fields)} fields; at most {FIELDS}")


def inner_imports(source: Source) -> Iterator[Breach]:
    """No imports inside functions of ``src``, but for the rim and the packages of extras."""
    if not source.module or source.room in IMPORTING_ROOMS:
        return
    for place in functions(source.tree):
        if place.is_inner:
            continue
        for node in ast.walk(place.function):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = ["." * node.level + (node.module or "")]
            for name in names:
                if name.split(".")[0] not in OPTIONAL_PACKAGES:
                    what = f"{place.function.name} imports {name}; import at the top"
                    yield Breach(source.path, node.lineno, what)


def broad_except(source: Source) -> Iterator[Breach]:
    """No ``except``, ``except Exception`` or wider in ``src``, but for the rim and the guard."""
    if not source.module or source.room in RIM_ROOMS:
        return
    guarded = {
        id(node)
        for place in functions(source.tree)
        if f"{source.path}:{place.function.name}" in GUARDS
        for node in ast.walk(place.function)
    }
    for node in nodes(source.tree):
        if isinstance(node, ast.ExceptHandler) and id(node) not in guarded and is_broad(node.type):
            yield Breach(source.path, node.lineno, "catches everything; name the errors it can handle")


def provider_fields(source: Source) -> Iterator[Breach]:
    """No provider's fields outside ``wire``: other rooms ask the ``Layout`` of the format."""
    if not source.module or {source.room, source.path} & FORMAT_READERS.keys():
        return
    for node in nodes(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in PROVIDER_FIELDS:
            yield Breach(source.path, node.lineno, f"names {node.value!r}; ask the wire's layout")


def module_name(source: Source) -> Iterator[Breach]:
    """Modules and folders are nouns that say what they hold."""
    for piece in source.path.removesuffix(".py").split("/"):
        if piece.lower() in BANNED_NAMES:
            yield Breach(source.path, 1, f"{piece!r} says nothing; name what it holds")


def docstrings(source: Source) -> Iterator[Breach]:
    """Every public module, class, function and method of ``src`` says what the caller may rely on."""
    if not source.module:
        return
    if not ast.get_docstring(source.tree):
        yield Breach(source.path, 1, "the module has no docstring")
    for node in nodes(source.tree):
        if isinstance(node, ast.ClassDef) and not is_private(node.name) and not ast.get_docstring(node):
            yield Breach(source.path, node.lineno, f"{node.name} has no docstring")
    for place in functions(source.tree):
        node = place.function
        exempt = is_dunder(node.name) or {"overload", "setter"} & set(decorators(node))
        if place.is_public and not exempt and not ast.get_docstring(node):
            yield Breach(source.path, node.lineno, f"{node.name} has no docstring")


def room_docstring(source: Source) -> Iterator[Breach]:
    """The docstring of a room says what the room does not know, and where a reader starts."""
    if (
        source.path.count("/") == 3
        and source.path.startswith("src/lading/")
        and source.path.endswith("__init__.py")
    ):
        text = " ".join((ast.get_docstring(source.tree) or "").casefold().split())
        for words in ("knows", "start with"):
            if words not in text:
                yield Breach(source.path, 1, f"the docstring of the room has no {words!r}")


def sorted_exports(source: Source) -> Iterator[Breach]:
    """``__all__`` is a sorted list of literal names: constants, then classes, then functions."""
    for node in source.tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if not any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            continue
        assert isinstance(node, ast.Assign)
        try:
            names = list(ast.literal_eval(node.value))
        except ValueError:
            yield Breach(source.path, node.lineno, "__all__ is not a list of literal names")
            continue
        if names != sorted(set(names), key=export_order):
            yield Breach(source.path, node.lineno, "__all__ is not sorted, or names something twice")


def import_cycles(sources: Sequence[Source]) -> Iterator[Breach]:
    """No module of ``src`` imports itself through others, imports inside functions included."""
    by_module = {source.module: source for source in sources if source.module}
    graph = {
        module: {name for name in imported(source, by_module) if name in by_module and name != module}
        for module, source in by_module.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = error.args[1]
        yield Breach(by_module[cycle[0]].path, 1, "import cycle: " + " <- ".join(cycle))


def inheritance_depth(sources: Sequence[Source]) -> Iterator[Breach]:
    """Depth 1, a base from outside included; errors 3."""
    classes = {
        (source.module, node.name): (source, node)
        for source in sources
        if source.module
        for node in nodes(source.tree)
        if isinstance(node, ast.ClassDef)
    }

    def depth(key: tuple[str, str]) -> int:
        source, node = classes[key]
        steps = [0]
        for base in node.bases:
            target = resolve(source, base)
            if target in classes and target != key:
                steps.append(1 + depth(target))
            elif last_name(base) not in ROOTLESS_BASES:
                steps.append(1)
        return max(steps)

    for key, (source, node) in classes.items():
        limit = INHERITANCE_OF_ERRORS if source.path.endswith("/errors.py") else INHERITANCE
        if depth(key) > limit:
            yield Breach(source.path, node.lineno, f"{node.name} inherits {depth(key)} deep; at most {limit}")


def source_size(sources: Sequence[Source]) -> Iterator[Breach]:
    """The house stays readable: floors 0 to 6, and all of ``src``."""
    lines: Counter[bool] = Counter()
    for source in sources:
        if source.module:
            lines[source.room in UPPER_ROOMS] += source.lines
    if lines[False] > LOWER_FLOORS_LINES:
        yield Breach("src", 1, f"floors 0 to 6 have {lines[False]} lines; at most {LOWER_FLOORS_LINES}")
    if lines.total() > SOURCE_LINES:
        yield Breach("src", 1, f"{lines.total()} lines; at most {SOURCE_LINES}")


def is_broad(caught: ast.expr | None) -> bool:
    """Whether an except clause catches every error there is."""
    if isinstance(caught, ast.Tuple):
        return any(is_broad(item) for item in caught.elts)
    return caught is None or last_name(caught) in {"Exception", "BaseException"}


def is_value(node: ast.ClassDef) -> bool:
    """Whether the fields of the class's instances cannot be set, or are the keys of a typed dict."""
    bases = {last_name(base) for base in node.bases}
    options = node.keywords if "Struct" in bases else []
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and last_name(decorator) == "dataclass":
            options = decorator.keywords
    frozen = any(option.arg == "frozen" and ast.unparse(option.value) == "True" for option in options)
    return frozen or bool(bases & {"NamedTuple", "TypedDict"})


def export_order(name: str) -> tuple[int, str]:
    """Where a name stands in ``__all__``."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2), name


RULES: tuple[Callable[[Source], Iterator[Breach]], ...] = (
    file_length,
    function_length,
    parameter_count,
    open_keywords,
    field_count,
    inner_imports,
    broad_except,
    provider_fields,
    module_name,
    docstrings,
    room_docstring,
    sorted_exports,
    seconds,
    plain_words,
)
TREE_RULES: tuple[Callable[[Sequence[Source]], Iterator[Breach]], ...] = (
    import_cycles,
    inheritance_depth,
    source_size,
    class_names,
)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
