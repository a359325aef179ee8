// $equation
$coefficients#include <stdint.h>
#include <string.h>
#include <tgmath.h>
#ifdef _OPENMP
#include <omp.h>
#define SIMD _Pragma("omp simd")
#else
#define SIMD
#endif

typedef $real real;
enum { CHANNELS = $channels, WIDTH = $width, BLOCK = $block, STORED = $stored_count, CHUNK = 256 };
#define INLINE static inline __attribute__((always_inline))
#define EACH_CHANNEL for (int c = 0; c < CHANNELS; ++c)

// Where everything lies for one member of the batch.
typedef struct {
$members
    double t;
} Member;

static Member make_member(const void *const *arrays, const int64_t *strides, const int64_t nodes, const int64_t m,
                          const double t, const real *state, real *out, real *work) {
    Member p;
    p.t = t;
    p.state = state;
    p.out = out;
$filling
    return p;
}

// The run that a row lies in.
static inline int64_t first_run(const int64_t *starts, const int64_t count, const int64_t row) {
    int64_t low = 0, high = count;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (starts[middle] <= row) low = middle; else high = middle;
    }
    return low;
}

// A run whose degree is known here: its offsets and weights are copied, so that no store can change them.
#define WITH_CONSTANTS(run, K) { \
        int64_t own_offsets[K]; \
        real own_weights[K]; \
        for (int k = 0; k < K; ++k) own_offsets[k] = offsets[k], own_weights[k] = weights[k]; \
        run(p, K, first, last, own_offsets, own_weights); }

$functions

$passes
#define BLOCK_OF(pass) pass(&p, b * BLOCK, (b + 1) * BLOCK < nodes ? (b + 1) * BLOCK : nodes)
#define RUN_PASS(pass) \
    if (threads > 1) { \
        _Pragma("omp parallel for num_threads(threads) schedule(static)") \
        for (int64_t b = 0; b < blocks; ++b) BLOCK_OF(pass); \
    } else { \
        for (int64_t b = 0; b < blocks; ++b) BLOCK_OF(pass); \
    }

// The slope of one member.
static void slope(const Member p, const int64_t nodes, const int threads) {
    const int64_t blocks = (nodes + BLOCK - 1) / BLOCK;
$calls
}

static int own_thread(void) {
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

// The slopes of all members: states and out are (members, nodes, WIDTH), work (threads, STORED, nodes, CHANNELS).
void field(const void *const *arrays, const int64_t *strides, const int64_t nodes, const int64_t members,
           const int threads, const double *times, const int64_t time_stride, const real *states, real *out,
           real *work) {
    const int64_t size = nodes * WIDTH, room = STORED * nodes * CHANNELS;
    if (members == 1) {
        slope(make_member(arrays, strides, nodes, 0, times[0], states, out, work), nodes, threads);
        return;
    }
    #pragma omp parallel for num_threads(threads) if(threads > 1) schedule(static)
    for (int64_t m = 0; m < members; ++m)
        slope(make_member(arrays, strides, nodes, m, times[m * time_stride], states + m * size, out + m * size,
                          work + own_thread() * room), nodes, 1);
}

// to = from + dt * sum of weights[j] * slopes[j], in chunks that stay in the cache; whether all of it is within bound.
static int combine(const int64_t size, const int threads, const real *from, const real dt, const int count,
                   const double *weights, const real *slopes, real *to, const real bound) {
    int outside = 0;
    (void)threads;
    #pragma omp parallel for num_threads(threads) if(threads > 1) schedule(static) reduction(|:outside)
    for (int64_t first = 0; first < size; first += CHUNK) {
        const int length = size - first < CHUNK ? (int)(size - first) : CHUNK;
        real sum[CHUNK] = {0};
        for (int j = 0; j < count; ++j) {
            const real weight = (real)weights[j], *restrict k = slopes + j * size + first;
            if (weight != 0)
                for (int e = 0; e < length; ++e) sum[e] += weight * k[e];
        }
        int beyond = 0;
        for (int e = 0; e < length; ++e) {
            to[first + e] = from[first + e] + dt * sum[e];
            beyond |= !(fabs(to[first + e]) <= bound);
        }
        outside |= beyond;
    }
    return !outside;
}

// Explicit Runge-Kutta steps of one member, until it leaves the bound, where it stays. The state is changed in place;
// scratch is (stages + 2, size) and work.
static void march_member(const void *const *arrays, const int64_t *strides, const int64_t nodes, const int64_t m,
                         const int threads, real *state, real *scratch, const int stages, const double *rows,
                         const double *weights, const double *nodes_of_stages, const int64_t steps,
                         const int64_t step_stride, const double *times, const double *lengths, const uint8_t *active,
                         const int64_t active_stride, const double bound, const int is_guarded, uint8_t *alive,
                         int64_t *survived, real *first_slope) {
    const int64_t size = nodes * WIDTH;
    real *slopes = scratch, *stage = scratch + stages * size, *next = stage + size, *work = next + size, *now = state;
    for (int64_t k = 0; k < steps && *alive; ++k) {
        if (active != 0 && !active[k * active_stride]) {
            ++*survived;
            continue;
        }
        const real dt = (real)lengths[k * step_stride];
        const double *row = rows;
        for (int s = 0; s < stages; row += s, ++s) {
            const real *at = now;
            if (s > 0) {
                combine(size, threads, now, dt, s, row, slopes, stage, (real)INFINITY);
                at = stage;
            }
            const double t = times[k * step_stride] + nodes_of_stages[s] * lengths[k * step_stride];
            slope(make_member(arrays, strides, nodes, m, t, at, slopes + s * size, work), nodes, threads);
        }
        const int fine = combine(size, threads, now, dt, stages, weights, slopes, next, (real)bound);
        if (is_guarded && !fine) {
            *alive = 0;
            break;
        }
        ++*survived;
        real *const before = now;
        now = next;
        next = before;
    }
    if (now != state) memcpy(state, now, (size_t)size * sizeof(real));
    if (first_slope != 0) memcpy(first_slope, slopes, (size_t)size * sizeof(real));
}

// Steps of all members; step k of member m begins at times[k * step_stride + m * member_stride].
void march(const void *const *arrays, const int64_t *strides, const int64_t nodes, const int64_t members,
           const int threads, real *states, real *scratch, const int stages, const double *rows, const double *weights,
           const double *nodes_of_stages, const int64_t steps, const int64_t step_stride, const int64_t member_stride,
           const double *times, const double *lengths, const uint8_t *active, const double bound, const int is_guarded,
           uint8_t *alive, int64_t *survived, real *first_slopes) {
    const int64_t size = nodes * WIDTH, room = (stages + 2) * size + STORED * nodes * CHANNELS;
    const int outer = members > 1 ? threads : 1, inner = members > 1 ? 1 : threads;
    (void)outer;
    #pragma omp parallel for num_threads(outer) if(outer > 1) schedule(dynamic)
    for (int64_t m = 0; m < members; ++m)
        march_member(arrays, strides, nodes, m, inner, states + m * size, scratch + own_thread() * room, stages, rows,
                     weights, nodes_of_stages, steps, step_stride, times + m * member_stride,
                     lengths + m * member_stride, active == 0 ? 0 : active + m, members, bound, is_guarded, alive + m,
                     survived + m, first_slopes == 0 ? 0 : first_slopes + m * size);
}
