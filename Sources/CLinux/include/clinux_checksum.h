#ifndef CLINUX_CHECKSUM_H
#define CLINUX_CHECKSUM_H
#include <stddef.h>
#include <stdint.h>

// Returns 1 if this processor has an instruction for CRC-32C, otherwise 0.
int clinux_has_crc32c(void);
// Continues a CRC-32C with more bytes, by that instruction. The sum isn't inverted, neither before
// nor after.
uint32_t clinux_crc32c(uint32_t sum, const void *bytes, size_t count);

#endif
