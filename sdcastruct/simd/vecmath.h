/* Branch-free exp and log that a compiler can vectorise.

   Both reduce the argument with integer operations on the bits of a double and finish with a polynomial, so that a
   loop over them becomes straight SIMD code on any instruction set. The coefficients are Chebyshev fits computed in
   50-digit arithmetic; their truncation error is below one tenth of an ulp.

   log(x) = e log 2 + 2 atanh(s),  s = f / (2 + f),  x = 2^e (1 + f),  1 + f in [sqrt(1/2), sqrt(2))
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

#define LN2_HIGH 0x1.62e42feep-1 /* 32 bits: exact when multiplied by an exponent */
#define LN2_LOW 1.9082149292705878161e-10
#define SQRT_HALF_BITS UINT64_C(0x3fe6a09e667f3bcd)
#define ONE_BITS UINT64_C(0x3ff0000000000000)
#define MANTISSA_BITS UINT64_C(0x000fffffffffffff)
#define TWO_52_BITS UINT64_C(0x4330000000000000)

/* The smallest probability told apart from zero; its reciprocal is finite. */
#define TINY 0x1p-1000

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

/* e log 2 + log(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)): relative accuracy also as f -> 0 with e = 0. */
SDCA_INLINE double log_reduced(double e, double f) {
    double s = f / (2.0 + f), z = s * s;
    double tail = 0.073083605899309078747;
    tail = tail * z + 0.076658498167719293595;
    tail = tail * z + 0.090914448930955212417;
    tail = tail * z + 0.11111105562861404469;
    tail = tail * z + 0.14285714313015533383;
    tail = tail * z + 0.1999999999994969097;
    tail = tail * z + 0.33333333333333348452;
    return e * LN2_HIGH + (2.0 * s + (2.0 * s * z * tail + e * LN2_LOW));
}

/* Split a positive normal x into exponent and mantissa: x = 2^e m, m in [sqrt(1/2), sqrt(2)). */
SDCA_INLINE double exponent_of(double x, double *mantissa) {
    uint64_t shifted = bits_of(x) + (ONE_BITS - SQRT_HALF_BITS);
    *mantissa = double_of((shifted & MANTISSA_BITS) + SQRT_HALF_BITS);
    return double_of((shifted >> 52) | TWO_52_BITS) - (0x1p52 + 1023.0);
}

/* log x for a positive normal x. */
SDCA_INLINE double fast_log(double x) {
    double mantissa, e = exponent_of(x, &mantissa);
    return log_reduced(e, mantissa - 1.0);
}

/* log(1 + x) for 1 + x = ratio, given both so that neither a ratio near 0 nor one near 1 loses digits. */
SDCA_INLINE double fast_log_ratio(double ratio, double x) {
    double mantissa, e = exponent_of(ratio, &mantissa);
    return log_reduced(e, e == 0.0 ? x : mantissa - 1.0);
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
