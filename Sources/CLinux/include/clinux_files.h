#ifndef CLINUX_FILES_H
#define CLINUX_FILES_H
#include <stdint.h>

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
