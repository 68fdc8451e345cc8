/* Branch-free exp and log that a compiler can vectorise.

   Both reduce the argument with integer operations on the bits of a double and finish with a polynomial, so that a
   loop over them becomes straight SIMD code on any instruction set. The coefficients are Chebyshev fits computed in
   50-digit arithmetic; with them both functions are accurate to a few units in the last place.

   log(x) = e log 2 + 2 atanh(s),  s = (m - 1) / (m + 1),  x = 2^e m,  m in [sqrt(1/2), sqrt(2))
   exp(x) = 2^k (1 + r + r^2 q(r)),  x = k log 2 + r,  |r| <= log(2) / 2                                            */
#ifndef SDCASTRUCT_VECMATH_H
#define SDCASTRUCT_VECMATH_H

#include <stdint.h>
#include <string.h>

#if defined(_MSC_VER)
#define SDCA_INLINE static __forceinline
#else
#define SDCA_INLINE static inline __attribute__((always_inline))
#endif

#define LN2 0.69314718055994530942
#define LN2_HIGH 0x1.62e42feep-1 /* 32 bits: exact when multiplied by an exponent */
#define LN2_LOW 1.9082149292705878161e-10
#define SQRT_HALF_BITS UINT64_C(0x3fe6a09e667f3bcd)
#define ONE_BITS UINT64_C(0x3ff0000000000000)
#define MANTISSA_BITS UINT64_C(0x000fffffffffffff)
#define TWO_52_BITS UINT64_C(0x4330000000000000)

#define SQRT_HALF_BITS_FLOAT INT32_C(0x3f3504f3)

/* Added to probabilities before a logarithm or a division: changes none above 1e-284, and makes 0 log 0 = 0. */
#define TINY 0x1p-1000
/* The same in single precision, where numbers that round to a subnormal would be slow. */
#define TINY_FLOAT 0x1p-100f
#define SMALL_FLOAT 0x1p-90f /* what TINY_FLOAT changes by less than a thousandth */

SDCA_INLINE uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

SDCA_INLINE double double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* log x for a positive normal x. */
SDCA_INLINE double fast_log(double x) {
    uint64_t shifted = bits_of(x) + (ONE_BITS - SQRT_HALF_BITS);
    double m = double_of((shifted & MANTISSA_BITS) + SQRT_HALF_BITS);
    double e = double_of((shifted >> 52) | TWO_52_BITS) - (0x1p52 + 1023.0);
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double series = 2 * 0.083110385208919865218;
    series = series * z + 2 * 0.090700883001576498062;
    series = series * z + 2 * 0.11111431336825660583;
    series = series * z + 2 * 0.14285712067353897704;
    series = series * z + 2 * 0.20000000005608947813;
    series = series * z + 2 * 0.33333333333331038824;
    series = series * z + 2.0;
    return s * series + e * LN2;
}

/* phi(y) = (1 + y) log(1 + y) - y and its derivative log(1 + y) in single precision, given u = 1 + y >= 0. Both are right
   to a few units in the last place near y = 0, too, where they are about y^2 / 2 and y: there u has lost digits of y, so
   that the polynomial takes y itself. Elsewhere phi is that of u, because y has another rounding, which would show. The
   polynomial is summed as a tree, because a processor waits for each term of a chain.                               */
SDCA_INLINE float rough_phi(float y, float u, float *log_u) {
    int32_t bits, mantissa;
    memcpy(&bits, &u, sizeof bits);
    int32_t above = bits - SQRT_HALF_BITS_FLOAT, e = above >> 23;
    float f;
    mantissa = (above & 0x007fffff) + SQRT_HALF_BITS_FLOAT;
    memcpy(&f, &mantissa, sizeof f);
    f = e == 0 ? y : f - 1.0f;
    float f2 = f * f, f4 = f2 * f2;
    float terms_01 = 0.333336426759f * f - 0.499999925635f, terms_23 = 0.1997445975f * f - 0.250020584998f;
    float terms_45 = 0.147750091538f * f - 0.165620211448f, terms_67 = 0.0922664353244f * f - 0.14352299787f;
    float rest = f2 * ((terms_67 * f2 + terms_45) * f4 + (terms_23 * f2 + terms_01)); /* log(1 + f) - f */
    *log_u = (float)e * 0.69314718056f + (f + rest);
    return e == 0 ? f2 + u * rest : u * *log_u - (u - 1.0f);
}

/* exp x for x <= 709; zero below -708, where the result would be subnormal. */
SDCA_INLINE double fast_exp(double x) {
    const double shift = 0x1.8p52; /* adding it rounds to an integer and leaves that integer in the low bits */
    double clamped = x < -708.0 ? -708.0 : x;
    double shifted = clamped * 1.4426950408889634074 + shift;
    double k = shifted - shift;
    double r = (clamped - k * LN2_HIGH) - k * LN2_LOW;
    double q = 2.5100385495510319078e-8;
    q = q * r + 2.7620088445409748161e-7;
    q = q * r + 2.7557268459997064772e-6;
    q = q * r + 0.000024801521295954375131;
    q = q * r + 0.00019841269863053616878;
    q = q * r + 0.0013888888917213716901;
    q = q * r + 0.0083333333333300618325;
    q = q * r + 0.041666666666624127873;
    q = q * r + 0.16666666666666667453;
    q = q * r + 0.50000000000000010221;
    double scale = double_of((bits_of(shifted) << 52) + ONE_BITS);
    double value = scale * (1.0 + (r + r * r * q));
    return x < -708.0 ? 0.0 : value;
}

#endif
