#ifndef CLINUX_MORE_H
#define CLINUX_MORE_H
#include "clinux_memory.h"

// Calls accept4(2) with SOCK_CLOEXEC | SOCK_NONBLOCK. The client's address isn't read.
int clinux_accept(int listener);
// Accepts a connection from a listener that other processes share, and which may block because of
// them. It waits for at most 10 ms.
int clinux_accept_shared(int listener);

// Calls process_madvise(2) with MADV_PAGEOUT: the kernel moves pages of another process's range to
// swap, as far as it permits.
int clinux_page_out(int pidfd, const struct clinux_range *range);
// Returns the magic number of the file system on which a path is (statfs(2)).
int64_t clinux_file_system_type(const char *path);
// Calls fallocate(2) with FALLOC_FL_COLLAPSE_RANGE at offset 0, which removes whole blocks from the
// beginning of a file if the file system supports it. Data that is appended meanwhile stays.
int clinux_cut_beginning(int fd, int64_t length);
// Calls renameat2(2) with RENAME_EXCHANGE: each of the two files gets the other's name.
int clinux_exchange(const char *one, const char *other);
// Calls memfd_create(2) with MFD_CLOEXEC.
int clinux_memory_file(const char *name);
#endif
