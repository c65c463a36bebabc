#ifndef CLINUX_PURGEABLE_H
#define CLINUX_PURGEABLE_H
#include <stdint.h>

// The seals (fcntl(2), F_GET_SEALS) and the size of a file whose descriptor a worker has sent.
// Returns -EINVAL if it isn't a file of shared memory in ordinary pages. (A file of huge pages can
// be sealed, too, but a fault on one may end in SIGBUS.)
struct clinux_shared_file {
  int seals;
  int64_t size;
};
enum {
  CLINUX_SEAL_SHRINK = 0x2,
  CLINUX_SEAL_GROW = 0x4,
};
int clinux_shared_file_facts(int fd, struct clinux_shared_file *facts);
// Returns the bytes of memory and swap that the file uses.
int64_t clinux_allocated_bytes(int fd);
// Frees a range of the file by fallocate(2) with FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE.
int clinux_punch(int fd, int64_t offset, int64_t length);
// Maps the beginning of the file as shared memory that isn't locked. Returns the address, or
// -errno.
int64_t clinux_map_shared(int fd, int64_t length);
int clinux_unmap(int64_t address, int64_t length);
// Makes a file of that size by memfd_create(2) with MFD_CLOEXEC | MFD_ALLOW_SEALING, and seals it.
int clinux_sealed_memory_file(const char *name, int64_t size, int seals);
#endif
