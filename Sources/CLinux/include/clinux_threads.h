#ifndef CLINUX_THREADS_H
#define CLINUX_THREADS_H

#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>

// Starts a thread that can't be joined, with all signals blocked. Its stack's memory is freed after
// it has ended (the memory of the last one with the next start or end of a thread). glibc would
// keep up to 40 MB of mappings of ended threads, each with 16 KB that were used.
//
// `apart`: the thread begins on another processor than the caller's, if it may run on another one.
// The kernel would often leave it on the caller's for milliseconds, while others are idle.
int clinux_start_thread(void (*body)(void *), void *argument, size_t stack_size, int apart);
// Frees the unused part of the calling thread's stack, below its current depth.
void clinux_release_unused_stack(void);
// Makes constants read-only that are stored with variables, because a compiler has marked their
// section (.rodata) as writable. Swift's generic metadata patterns are marked so. Returns the
// number of bytes.
int64_t clinux_protect_constants(void);
// Drops the pages of this process's code from its memory: those of segments that the executable and
// its libraries map read-only, and the constants that `clinux_protect_constants` has protected. The
// kernel maps them again from the file. Constants that the dynamic linker has relocated are in
// writable segments, and stay. The lock of dl_iterate_phdr(3) keeps other threads from unmapping a
// library meanwhile.
void clinux_release_code(void);
// Waits for the semaphore until CLOCK_MONOTONIC has reached `deadline` (nanoseconds). Returns 0, or
// -ETIMEDOUT.
int clinux_semaphore_wait(sem_t *semaphore, int64_t deadline);
// Gives the calling thread turns of 0.1 ms in place of some 3 ms (Linux 6.12): on a busy machine it
// then gets a processor soon after it wakes, and as much of it as before. With 0 it gets the usual
// turns again. Threads that it starts have the usual turns. Returns 0, or -errno: a thread that
// isn't scheduled as SCHED_OTHER stays as it is (-EINVAL).
//
// The nice value stays. If several threads change it by 15 and back all the time, threads may get
// no processor for 30 s (seen on Linux 6.18).
int clinux_use_short_turns(int are_short);
#endif
