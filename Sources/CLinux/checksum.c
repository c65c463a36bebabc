#include "clinux_checksum.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>

#define HAS_CRC __attribute__((target("sse4.2")))
#define NEXT_8(sum, word) ((uint32_t)_mm_crc32_u64(sum, word))
#define NEXT_1(sum, byte) _mm_crc32_u8(sum, byte)

int clinux_has_crc32c(void) {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2) != 0;
}

#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>

#define HAS_CRC __attribute__((target("crc")))
#define NEXT_8(sum, word) __crc32cd(sum, word)
#define NEXT_1(sum, byte) __crc32cb(sum, byte)

int clinux_has_crc32c(void) { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }

#else

#define HAS_CRC
#define NEXT_8(sum, word) ((void)(word), sum)
#define NEXT_1(sum, byte) ((void)(byte), sum)

int clinux_has_crc32c(void) { return 0; }

#endif

HAS_CRC uint32_t clinux_crc32c(uint32_t sum, const void *bytes, size_t count) {
  const uint8_t *next = bytes;
  for (; count >= 8; count -= 8, next += 8) {
    uint64_t word;
    memcpy(&word, next, 8);
    sum = NEXT_8(sum, word);
  }
  for (; count > 0; count--) sum = NEXT_1(sum, *next++);
  return sum;
}
