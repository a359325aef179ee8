// The loops of one pass: over compressed rows, or over runs of rows with equal offsets and weights; names in braces are
// filled in, and doubled braces are those of C.

// ---- rows
static void pass_{level}(const Member *member, const int64_t begin, const int64_t end) {{
    const Member copy = *member, *p = &copy;{simd}
    for (int64_t i = begin; i < end; ++i) {{
{body}
    }}
}}

// ---- entries
for ({index} e = p->{letter}_rows[i]; e < p->{letter}_rows[i + 1]; ++e) {{
    const real weight = p->{letter}_weights[e];
    const int64_t j = p->{letter}_columns[e];
    EACH_CHANNEL {{
{added}
    }}
}}

// ---- runs
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

// ---- mixed
real {name}[CHANNELS] = {{0}};
for (int k = 0; k < CHANNELS; ++k) {{
    const real value = {value};
    EACH_CHANNEL {name}[c] += value * p->{matrix}[k * CHANNELS + c];
}}
