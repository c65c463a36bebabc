#ifndef CLINUX_MORE_H
#define CLINUX_MORE_H
#include "clinux_memory.h"

// accept4(2) with SOCK_CLOEXEC | SOCK_NONBLOCK; the client's address isn't read.
int clinux_accept(int listener);
// The same for a listener that other processes share and may make it block: it waits 10 ms at most.
int clinux_accept_shared(int listener);

// process_madvise(2) with MADV_PAGEOUT: the kernel moves pages of another process's range to swap, as far as
// it permits.
int clinux_page_out(int pidfd, const struct clinux_range *range);
// The magic number of the file system that a path is on (statfs(2)).
int64_t clinux_file_system_type(const char *path);
// fallocate(2) with FALLOC_FL_COLLAPSE_RANGE from 0 on: takes whole blocks out of a file's beginning,
// where the file system can. Data that is appended meanwhile stays.
int clinux_cut_beginning(int fd, int64_t length);
// renameat2(2) with RENAME_EXCHANGE: each of the two files gets the other's name.
int clinux_exchange(const char *one, const char *other);
// memfd_create(2) with MFD_CLOEXEC.
int clinux_memory_file(const char *name);
#endif
