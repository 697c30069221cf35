"""Every shape of code in which kernels and launches are written, in one small text each."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from search_engine.domain.kernel import Kernel, Language, Module, OperationKind
from search_engine.frontends.registry import frontend_for
from search_engine.frontends.triton import parse_module

HEAD = "import triton\nimport triton.language as tl\n\n"
BODY = "    tl.store(p + tl.arange(0, 16), 1.0)\n"
SOFTMAX = Path(__file__).parents[3] / "examples" / "softmax.py"


def parse(text: str, head: str = HEAD) -> Module:
    return parse_module(head + textwrap.dedent(text), "/project/kernels.py")


def only_kernel(module: Module) -> Kernel:
    assert len(module.kernels) == 1
    return module.kernels[0]


def source(module: Module, item: object) -> str:
    span = item.span  # pyright: ignore
    return module.text.encode()[span.start : span.end].decode()


@pytest.mark.parametrize(
    ("head", "decorators", "names"),
    [
        (HEAD, "@triton.jit", ["triton.jit"]),
        (HEAD, "@triton.jit(do_not_specialize=['n'])", ["triton.jit"]),
        (HEAD, "@triton.jit()", ["triton.jit"]),
        (
            HEAD,
            "@triton.autotune(configs=[triton.Config({'B': 1})], key=['n'])\n@triton.jit",
            ["triton.autotune", "triton.jit"],
        ),
        (
            HEAD,
            "@triton.heuristics({'E': lambda a: a['n'] % 2 == 0})\n@triton.jit(debug=True)",
            ["triton.heuristics", "triton.jit"],
        ),
        (
            HEAD,
            "@libentry()\n@libtuner(key=['n'])\n@triton.jit",
            ["libentry", "libtuner", "triton.jit"],
        ),
        (
            HEAD,
            "@pointwise_dynamic(promotion_methods=[(0, 'DEFAULT')])\n@triton.jit",
            ["pointwise_dynamic", "triton.jit"],
        ),
        ("from triton import jit\nfrom triton import language as tl\n", "@jit", ["jit"]),
        (
            "from triton import jit as kernel, cdiv\nimport triton.language as tl\n",
            "@kernel",
            ["kernel"],
        ),
        ("import triton as tr\nimport triton.language as tl\n", "@tr.jit", ["tr.jit"]),
        ("try:\n    import triton as t\nexcept ImportError:\n    t = None\n", "@t.jit", ["t.jit"]),
        (
            "from triton import (\n    autotune,\n    jit,\n)\n",
            "@autotune([], [])\n@jit",
            ["autotune", "jit"],
        ),
        ("from triton.experimental import gluon\n", "@gluon.jit", ["gluon.jit"]),
        ("", "@triton.jit", ["triton.jit"]),
    ],
)  # fmt: skip
def test_decorators_that_make_a_kernel(head: str, decorators: str, names: list[str]) -> None:
    module = parse(f"{decorators}\ndef k(p, n, B: tl.constexpr):\n{BODY}", head)

    kernel = only_kernel(module)
    assert [decorator.name for decorator in kernel.decorators] == names
    assert source(module, kernel).startswith(decorators.split("(")[0])
    assert source(module, kernel).endswith("1.0)")
    assert kernel.launchable


@pytest.mark.parametrize(
    "decorator", ["@numba.jit", "@torch.jit.script", "@jit", "@jax.jit", "@my.project", "@cache"]
)
def test_decorators_of_others_make_no_kernel(decorator: str) -> None:
    module = parse(f"from numba import jit\n{decorator}\ndef k(p):\n{BODY}")
    assert module.kernels == ()
    assert module.units == ()


@pytest.mark.parametrize(
    ("assignment", "launched"),
    [
        ("k = triton.jit(body)", "k"),
        ("body = triton.jit(body)", "body"),
        ("k = triton.jit(fn=body)", "k"),
        ("k = triton.autotune(configs=[c], key=['n'])(triton.jit(body))", "k"),
        ("k = triton.heuristics({'B': lambda a: 1})(triton.jit(body))", "k"),
        ("k = triton.autotune([c], ['n'])(triton.heuristics({})(triton.jit(body)))", "k"),
        ("body = triton.jit(body)\nbody = triton.heuristics({})(body)", "body"),
    ],
)
def test_call_forms_make_a_kernel_of_the_function(assignment: str, launched: str) -> None:
    module = parse(
        f"def body(p, n):\n{BODY}\n{assignment}\n\ndef run(x):\n    {launched}[(1,)](x, 4)\n"
    )
    assert only_kernel(module).name == "body"
    assert [(launch.callee, launch.kernel) for launch in module.launches] == [(launched, "body")]
    assert module.units[0].entry is not None
    assert module.units[0].entry.name == "run"


def test_nested_and_conditional_definitions() -> None:
    module = parse(
        """
        def factory(width):
            @triton.jit
            def inner(p):
                tl.store(p, width)
            def launch(x):
                inner[(1,)](x)
            return launch

        if triton.__version__ >= "3":
            @triton.jit
            def pick(p):
                tl.store(p, 1)
        else:
            @triton.jit
            def pick(p):
                tl.store(p, 2)

        class Kernels:
            @staticmethod
            @triton.jit
            def held(p):
                tl.store(p, 3)
        """
    )

    found = [(k.qualified_name, k.ordinal, k.nested, k.conditional) for k in module.kernels]
    assert found == [
        ("factory.inner", 0, True, False),
        ("pick", 0, False, True),
        ("pick", 1, False, True),
        ("Kernels.held", 0, False, False),
    ]
    assert module.launches[0].entry == "factory"


def test_parameters() -> None:
    module = parse(
        """
        @triton.jit
        def k(p, n, eps: float = 1e-6, B: tl.constexpr = 64, C: "tl.constexpr" = None,
              D: triton.language.constexpr, *, E: constexpr, **options):
            tl.store(p, eps)
        """
    )
    listed = [(p.name, p.constexpr, p.default) for p in only_kernel(module).parameters]
    assert listed == [
        ("p", False, None),
        ("n", False, None),
        ("eps", False, "1e-6"),
        ("B", True, "64"),
        ("C", True, "None"),
        ("D", True, None),
        ("E", True, None),
        ("**options", False, None),
    ]


def test_helpers_are_followed_also_through_a_module_alias() -> None:
    module = parse(
        """
        import project.kernels as own

        @triton.jit
        def square(x):
            return x * x

        @triton.jit
        def cube(x):
            return own.square(x) * x

        @triton.jit
        def unrelated(x):
            return x

        @triton.jit
        def k(p):
            tl.store(p, cube(tl.load(p)))
        """
    )
    assert [unit.kernel.name for unit in module.units] == ["k"]
    assert module.kernels[3].calls == ("cube",)
    assert [helper.name for helper in module.units[0].helpers] == ["square", "cube"]


@pytest.mark.parametrize(
    ("launch", "callee", "kernel", "grid"),
    [
        ("k[grid](x, 4)", "k", "k", "grid"),
        ("k[lambda meta: (triton.cdiv(n, meta['B']),)](x, 4)", "k", "k",
         "lambda meta: (triton.cdiv(n, meta['B']),)"),
        ("k[(n, 1)](x, 4)", "k", "k", "(n, 1)"),
        ("k[n, 2](x, 4)", "k", "k", "n, 2"),
        ("k[n,](x, 4)", "k", "k", "n,"),
        ("self.k[(1,)](x, 4)", "self.k", "k", "(1,)"),
        ("module.k[grid](x, 4)", "module.k", "k", "grid"),
        ("wrap_triton(k)[grid](x, 4)", "wrap_triton(k)", "k", "grid"),
        ("torch.library.wrap_triton(k)[(1,)](x, 4)", "torch.library.wrap_triton(k)", "k", "(1,)"),
        ("make_kernel(4)[grid](x, 4)", "make_kernel(4)", "make_kernel", "grid"),
        ("imported_kernel[grid](x, 4)", "imported_kernel", "imported_kernel", "grid"),
        ("imported[blocks](x, BLOCK=4)", "imported", "imported", "blocks"),
        ("imported[blocks](x, num_warps=4)", "imported", "imported", "blocks"),
    ],
)  # fmt: skip
def test_launches(launch: str, callee: str, kernel: str, grid: str) -> None:
    module = parse(f"@triton.jit\ndef k(p, n):\n{BODY}\ndef run(x, n):\n    {launch}\n")
    assert [(item.callee, item.kernel, item.grid) for item in module.launches] == [
        (callee, kernel, grid)
    ]
    assert source(module, module.launches[0]) == launch
    assert module.entries[0].launches == module.launches


@pytest.mark.parametrize(
    "text", ["table[i](x, 4)", "handlers['a'](x)", "functions[0]()", "'k[(1,)](x)'", "# k[(1,)](x)"]
)
def test_other_subscripted_calls_are_no_launches(text: str) -> None:
    module = parse(f"@triton.jit\ndef k(p, n):\n{BODY}\ndef run(x, n):\n    {text}\n    return x\n")
    assert module.launches == ()
    assert module.entries == ()


def test_launch_arguments_and_opaque_ones() -> None:
    module = parse(
        """
        @triton.jit
        def k(p, q, n, B: tl.constexpr):
            tl.store(p, q)

        def run(x, *args, **kwargs):
            k[(1,)](x,  # the input
                    x.stride(0), B=64, num_warps=8)
            k[(1,)](*args)
            k[(1,)](x, **kwargs)
            k[(1,)]()
        """
    )
    first, second, third, fourth = module.launches
    assert [(a.name, a.text) for a in first.arguments] == [
        (None, "x"), (None, "x.stride(0)"), ("B", "64"), ("num_warps", "8"),
    ]  # fmt: skip
    assert [launch.opaque for launch in module.launches] == [False, True, True, False]
    assert [a.text for a in second.arguments] == ["*args"]
    assert [a.text for a in third.arguments] == ["x", "**kwargs"]
    inner = first.arguments_span
    assert module.text.encode()[inner.start : inner.end].decode().startswith("x,  # the")
    assert fourth.arguments == ()


def test_launches_in_loops_and_with_blocks() -> None:
    module = parse(
        """
        @triton.jit
        def k(p):
            tl.store(p, 1)

        def run(xs):
            with torch.cuda.device(0):
                k[(1,)](xs[0])
            for x in xs:
                with guard(x):
                    k[(1,)](x)
            while True:
                k[(1,)](xs[0])
            return [k[(1,)](x) for x in xs]
        """
    )
    assert [launch.in_loop for launch in module.launches] == [False, True, True, True]


def test_entries_are_functions_methods_and_autograd_functions() -> None:
    module = parse(
        """
        @triton.jit
        def k(p):
            tl.store(p, 1)

        def outer(x):
            def inner(y):
                k[(1,)](y)
            return inner(x)

        class Fn(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                k[(1,)](x)

            @staticmethod
            def backward(ctx, g):
                k[(1,)](g)

        class Layer(torch.nn.Module):
            def forward(self, x):
                k[(1,)](x)

        @torch.library.custom_op("a::b", mutates_args=())
        def op(x: torch.Tensor) -> torch.Tensor:
            k[(1,)](x)

        if __name__ == "__main__":
            k[(1,)](torch.zeros(1))
        """
    )
    assert [(e.qualified_name, e.method) for e in module.entries] == [
        ("outer", False), ("Fn.forward", True), ("Fn.backward", True), ("Layer.forward", True),
        ("op", False),
    ]  # fmt: skip
    assert [launch.entry for launch in module.launches] == [
        "outer", "Fn.forward", "Fn.backward", "Layer.forward", "op", None,
    ]  # fmt: skip
    assert source(module, module.entries[-1]).startswith("@torch.library")


def test_operations_and_loops() -> None:
    module = parse(
        """
        @triton.jit
        def k(p, q, n, desc, seed, B: tl.constexpr):
            o = tl.arange(0, B)
            a = tl.load(p + o)
            b = tl.load(p + o, o < n)
            c = tl.load(p + o, mask=None)
            d = tl.load(tl.make_block_ptr(p), boundary_check=(0,))
            e = desc.load([0, 0])
            total = 0.0
            for i in tl.range(0, n, B, num_stages=2):
                total += tl.sum(tl.load(q + i + o, mask=i + o < n), axis=0)
                while i < n:
                    total = tl.dot(a, b, total)
            m = tl.max(a, 0) + tl.argmax(b, 0) + tl.reduce(a, 0, add) + a.min()
            s = tl.cumsum(a) + tl.associative_scan(a, 0, add)
            r = tl.rand(seed, o) + tl.randn(seed, o)
            tl.atomic_add(q, total, mask=o < n)
            tl.atomic_max(q, total)
            tl.store(q + o, "tl.load(x)", o < n)
            tl.store(q, s)  # tl.load(p)
            libdevice.max(a, b)
            tl.maximum(a, b)
        """
    )
    kernel = only_kernel(module)
    found = [(o.name, o.masked, o.in_loop) for o in kernel.operations]
    assert found == [
        ("load", False, False), ("load", True, False), ("load", False, False),
        ("load", True, False), ("load", True, False),
        ("sum", False, True), ("load", True, True), ("dot", False, True),
        ("max", False, False), ("argmax", False, False), ("reduce", False, False),
        ("min", False, False),
        ("cumsum", False, False), ("associative_scan", False, False),
        ("rand", False, False), ("randn", False, False),
        ("atomic_add", True, False), ("atomic_max", False, False),
        ("store", True, False), ("store", False, False),
    ]  # fmt: skip
    kinds = {operation.name: operation.kind for operation in kernel.operations}
    assert kinds["rand"] is OperationKind.RANDOM
    assert kinds["cumsum"] is OperationKind.SCAN
    assert kinds["atomic_max"] is OperationKind.ATOMIC
    assert [(loop.target, loop.header) for loop in kernel.loops] == [
        ("i", "tl.range(0, n, B, num_stages=2)"),
        (None, "i < n"),
    ]


@pytest.mark.parametrize(
    "head",
    [
        "import triton\nimport triton.language as tl\n",
        "import triton\nfrom triton import language as tl\n",
        "import triton, triton.language as lang\n",
        "import triton.language as lang, triton\n",
        "import triton as T\n",
        "from triton import jit\nfrom triton.language import store, arange\n",
    ],
)
def test_aliases_of_the_language(head: str) -> None:
    name = "lang" if "lang" in head.replace("language", "") else "tl"
    call = f"{name}.store(p, 1)"
    if "as T" in head:
        call = "T.language.store(p, 1)"
    if "import store" in head:
        call = "store(p, 1)"
    jit = "@T.jit" if "as T" in head else "@jit" if "import jit" in head else "@triton.jit"
    module = parse(f"{jit}\ndef k(p):\n    {call}\n", head)
    assert [(o.name, o.masked) for o in only_kernel(module).operations] == [("store", False)]


def test_spans_count_bytes_and_lines_behind_wide_characters() -> None:
    module = parse(f"# 𝔘nicode — ñ\n@triton.jit\ndef k(p):\n{BODY}")
    kernel = only_kernel(module)
    assert source(module, kernel).startswith("@triton.jit\ndef k")
    assert kernel.span.line == 4
    name = kernel.name_span
    assert module.text.encode()[name.start : name.end] == b"k"


def test_an_unclosed_bracket_does_not_hide_the_kernels_below() -> None:
    module = parse(
        f"@triton.jit\ndef a(p):\n    x = tl.load(p + (\n\n@triton.jit\ndef b(p):\n{BODY}"
    )
    assert "b" in [kernel.name for kernel in module.kernels]
    assert module.problems
    assert all(problem.message for problem in module.problems)


def test_a_missing_colon_is_named() -> None:
    module = parse(f"@triton.jit\ndef k(p)\n{BODY}")
    assert [problem.message for problem in module.problems] == ["this does not parse: expected ':'"]
    assert module.problems[0].span.line == 4


def test_definitions_inside_strings_are_text() -> None:
    module = parse('TEMPLATE = """\n@triton.jit\ndef k(p):\n    tl.store(p, 1)\n"""\n')
    assert module.kernels == ()
    assert module.problems == ()


def test_text_cut_at_any_token_never_raises() -> None:
    text = SOFTMAX.read_text()
    cuts = [i for i in range(1, len(text)) if text[i - 1].isalnum() != text[i].isalnum()]
    for cut in cuts:
        module = parse_module(text[:cut], "softmax.py")
        for kernel in module.kernels:
            assert 0 <= kernel.span.start < kernel.span.end <= len(text[:cut].encode())
    for cut in cuts[::7]:
        parse_module(text[cut:], "softmax.py")


def test_results_do_not_depend_on_what_was_parsed_before() -> None:
    text = SOFTMAX.read_text()
    changed = text.replace("denominator = 0.0", "denominator = 0.5").replace("import torch", "\n\n")
    before = parse_module(text, "a.py")
    parse_module(changed, "a.py")
    assert parse_module(text, "a.py") == before
    from search_engine.frontends import syntax_digest, triton_pieces

    triton_pieces.read_piece.cache_clear()
    triton_pieces.place_piece.cache_clear()
    syntax_digest.syntax_digest.cache_clear()
    assert parse_module(text, "a.py") == before


def test_front_ends_by_suffix() -> None:
    assert frontend_for("/a/b/kernel.py") is parse_module
    assert frontend_for("/a/b/kernel.rs") is None
    assert parse("").language is Language.TRITON


def test_a_byte_order_mark_before_the_first_import_is_no_part_of_it() -> None:
    text = "import triton as t\n\n\n@t.jit\ndef kernel(p):\n    t.language.store(p, 1)\n"
    marked = parse_module("\ufeff" + text, "k.py")
    assert marked.problems == ()
    assert [kernel.name for kernel in marked.kernels] == ["kernel"]
    assert marked.text[1:] == text
