"""The C loops of one pass: over compressed rows, or over runs of rows whose entries lie and weigh alike."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import indent

from rdgraph.lowering.entry_source import PassText
from rdgraph.lowering.source_names import SourceNames

#: Degrees up to which the rows of a run have a loop of their own.
MOST_UNROLLED = 12

_ROWS = """\
static void pass_{level}(const Member *member, const int64_t begin, const int64_t end) {{
    const Member copy = *member, *p = &copy;{simd}
    for (int64_t i = begin; i < end; ++i) {{
{body}
    }}
}}
"""

_ENTRIES = """\
for ({index} e = p->{letter}_rows[i]; e < p->{letter}_rows[i + 1]; ++e) {{
    const real weight = p->{letter}_weights[e];
    const int64_t j = p->{letter}_columns[e];
    EACH_CHANNEL {{
{added}
    }}
}}"""

_RUNS = """\
INLINE void run_{level}(const Member *p, const int degree, const int64_t begin, const int64_t end,
                  const int64_t *restrict offsets, const real *restrict weights) {{{simd}
    for (int64_t i = begin; i < end; ++i) {{
{sums}
        for (int k = 0; k < degree; ++k) {{
            EACH_CHANNEL {{
{added}
            }}
        }}
{body}
    }}
}}

static void pass_{level}(const Member *member, const int64_t begin, const int64_t end) {{
    const Member copy = *member, *p = &copy;
    const int64_t *starts = p->{letter}_starts;
    for (int64_t r = first_run(starts, p->{letter}_count[0], begin); starts[r] < end; ++r) {{
        const int64_t first = starts[r] < begin ? begin : starts[r];
        const int64_t last = starts[r + 1] > end ? end : starts[r + 1];
        const int64_t *offsets = p->{letter}_offsets + p->{letter}_entries[r];
        const real *weights = p->{letter}_weights + p->{letter}_entries[r];
        switch (p->{letter}_degrees[r]) {{
{cases}
        default: run_{level}(p, p->{letter}_degrees[r], first, last, offsets, weights);
        }}
    }}
}}
"""

_MIXED = """\
real {name}[CHANNELS] = {{0}};
for (int k = 0; k < CHANNELS; ++k) {{
    const real value = {value};
    EACH_CHANNEL {name}[c] += value * p->{matrix}[k * CHANNELS + c];
}}"""


def loop_source(text: PassText, names: SourceNames) -> str:
    """The function of one pass over the rows from `begin` to `end`."""
    simd = "\n    SIMD" if names.layout.channels == 1 else ""
    if names.layout.run_degrees is not None and text.gathers:
        return _runs(text, names, names.layout.run_degrees, simd)
    body = [*_sums(text)]
    for letter, index in names.layout.operators:
        added = [
            f"{name}[c] += weight * {names.at(array, 'j')};"
            for (own, array), name in text.gathers.items()
            if own == letter
        ]
        if added:
            body.append(_ENTRIES.format(index=index, letter=letter, added=_indented(added, 8)))
    body += _entry(text, names)
    return _ROWS.format(level=text.level, simd="" if text.gathers else simd, body=_indented(body, 8))


def _runs(text: PassText, names: SourceNames, degrees: tuple[int, ...], simd: str) -> str:
    (letter,) = dict.fromkeys(letter for letter, _ in text.gathers)
    added = [
        f"{name}[c] += weights[k] * {names.at(array, '(i + offsets[k])')};" for (_, array), name in text.gathers.items()
    ]
    cases = [f"case {k}: WITH_CONSTANTS(run_{text.level}, {k}) break;" for k in degrees if 0 < k <= MOST_UNROLLED]
    return _RUNS.format(
        level=text.level, letter=letter, simd=simd, sums=_indented(_sums(text), 8), added=_indented(added, 16),
        body=_indented(_entry(text, names), 8), cases=_indented(cases, 8),
    )  # fmt: skip


def _sums(text: PassText) -> list[str]:
    return [f"real {name}[CHANNELS] = {{0}};" for name in text.gathers.values()]


def _entry(text: PassText, names: SourceNames) -> list[str]:
    """Mixed channels, and then every entry of a row."""
    mixed = [
        _MIXED.format(name=name, matrix=matrix, value=names.at(array, "i", "k"))
        for (matrix, array), name in text.mixes.items()
    ]
    given = ["p", "i", "c", *(f"{name}[c]" for name in text.sums)]
    return [*mixed, f"EACH_CHANNEL entry_{text.level}({', '.join(given)});"]


def _indented(lines: Iterable[str], width: int) -> str:
    return indent("\n".join(lines), " " * width)
