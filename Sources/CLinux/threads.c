#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clinux_threads.h"

struct thread {
  pthread_t id;
  char *mapping;
  size_t length;
  void (*body)(void *);
  void *argument;
  // True if the thread begins on another processor than its creator's. It may then run on all
  // processors in `allowed`.
  int is_apart;
  cpu_set_t allowed;
};

// The thread that ended last; it isn't joined yet.
static struct thread *_Atomic ended;

static void free_thread(struct thread *thread) {
  if (!thread) return;
  // The thread has executed all but its last instructions.
  pthread_join(thread->id, NULL);
  munmap(thread->mapping, thread->length);
  free(thread);
}

static void *run(void *argument) {
  struct thread *self = argument;
  self->id = pthread_self();
  // If this fails, this short thread stays on fewer processors.
  if (self->is_apart) sched_setaffinity(0, sizeof self->allowed, &self->allowed);
  self->body(self->argument);
  // A thread can't unmap the stack on which it runs; the next one unmaps it.
  free_thread(atomic_exchange(&ended, self));
  return NULL;
}

// On a machine with more processors than fit in the set, this fails. Threads spread by themselves
// there.
static void set_apart(struct thread *thread, pthread_attr_t *attributes) {
  thread->is_apart = 0;
  int processor = sched_getcpu();
  if (processor < 0 || sched_getaffinity(0, sizeof thread->allowed, &thread->allowed)) return;
  cpu_set_t others = thread->allowed;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0) return;
  thread->is_apart = !pthread_attr_setaffinity_np(attributes, sizeof others, &others);
}

static int create(struct thread *thread, size_t guard) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  int error = pthread_attr_setstack(&attributes, thread->mapping + guard, thread->length - guard);
  if (thread->is_apart) set_apart(thread, &attributes);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t id;
  if (!error) error = pthread_create(&id, &attributes, run, thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error;
}

int clinux_start_thread(void (*body)(void *), void *argument, size_t stack_size, int apart) {
  free_thread(atomic_exchange(&ended, NULL));
  size_t guard = (size_t)sysconf(_SC_PAGESIZE);
  struct thread *thread = malloc(sizeof *thread);
  if (!thread) return -ENOMEM;
  *thread = (struct thread){.length = guard + stack_size, .body = body, .argument = argument,
                            .is_apart = apart};
  thread->mapping = mmap(NULL, thread->length, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  int error = thread->mapping == MAP_FAILED ? errno : 0;
  if (!error && mprotect(thread->mapping, guard, PROT_NONE)) error = errno;
  if (!error) error = create(thread, guard);
  if (!error) return 0;
  if (thread->mapping != MAP_FAILED) munmap(thread->mapping, thread->length);
  free(thread);
  return -error;
}

// Frees pages of a stack. Returns 0 if some of them aren't mapped; the others are freed then.
static int release_pages(uintptr_t start, uintptr_t end) {
  // Locked memory can be released since Linux 5.18, by an advice of its own, which older kernels
  // refuse.
  int advice = 24;  // MADV_DONTNEED_LOCKED
  if (!madvise((void *)start, end - start, advice)) return 1;
  if (errno == EINVAL) {
    munlock((void *)start, end - start);
    if (!madvise((void *)start, end - start, MADV_DONTNEED)) return 1;
  }
  return errno != ENOMEM;
}

void clinux_release_unused_stack(void) {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes)) return;
  void *lowest;
  size_t size;
  int error = pthread_attr_getstack(&attributes, &lowest, &size);
  pthread_attr_destroy(&attributes);
  if (error) return;
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t start = ((uintptr_t)lowest + page - 1) & ~(page - 1);
  // Keep this function's own frame, and that of the call.
  uintptr_t end = ((uintptr_t)__builtin_frame_address(0) - 1024) & ~(page - 1);
  if (start >= end) return;
  if (getpid() != syscall(SYS_gettid)) {
    release_pages(start, end);
    return;
  }
  // The first thread's stack isn't mapped down to its limit, and another thread may have mapped
  // memory below it. The kernel leaves a gap of 1 MiB between them, so no step has pages of both.
  uintptr_t step = 64 * 1024;
  while (start < end) {
    uintptr_t next = end - start > step ? end - step : start;
    if (!release_pages(next, end)) return;
    end = next;
  }
}

// The executable's constants, once they are read-only, if none of their pages was ever changed.
static uintptr_t constants, constants_end;

// Returns 1 if all pages are as in the file: this process has no copy of one, in RAM or in swap.
static int are_as_in_file(uintptr_t start, uintptr_t end) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (map < 0) return 0;
  int result = 1;
  for (; result && start < end; start += page) {
    uint64_t entry;
    off_t offset = (off_t)(start / page * sizeof entry);
    // Bits 63: in RAM, 62: in swap, 61: the file's own page.
    result = pread(map, &entry, sizeof entry, offset) == sizeof entry &&
             (entry >> 62 == 0 || entry >> 61 & 1);
  }
  close(map);
  return result;
}

static int64_t protect(uintptr_t start, uint64_t length) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t first = (start + page - 1) & ~(page - 1), end = (start + length) & ~(page - 1);
  if (first >= end || mprotect((void *)first, end - first, PROT_READ)) return 0;
  if (are_as_in_file(first, end)) constants = first, constants_end = end;
  return (int64_t)(end - first);
}

int64_t clinux_protect_constants(void) {
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  int64_t sum = 0;
  ElfW(Ehdr) header;
  ElfW(Shdr) names, section;
  uintptr_t headers = getauxval(AT_PHDR);
  if (pread(file, &header, sizeof header, 0) == sizeof header &&
      !memcmp(header.e_ident, ELFMAG, SELFMAG) &&
      header.e_shentsize == sizeof section && headers > header.e_phoff &&
      pread(file, &names, sizeof names,
            (off_t)(header.e_shoff + header.e_shstrndx * sizeof names)) == sizeof names) {
    // The load address of a position-independent executable.
    uintptr_t base = header.e_type == ET_DYN ? headers - header.e_phoff : 0;
    for (int i = 1; i < header.e_shnum; i++) {
      char name[sizeof ".rodata"] = "";
      off_t offset = (off_t)(header.e_shoff + (uint64_t)i * sizeof section);
      if (pread(file, &section, sizeof section, offset) != sizeof section) break;
      if (section.sh_type != SHT_PROGBITS || !(section.sh_flags & SHF_WRITE)) continue;
      off_t position = (off_t)(names.sh_offset + section.sh_name);
      if (pread(file, name, sizeof name, position) != sizeof name) continue;
      if (!memcmp(name, ".rodata", sizeof name))
        sum += protect(base + section.sh_addr, section.sh_size);
    }
  }
  close(file);
  return sum;
}

// Returns 1 if the dynamic linker has changed the code itself (text relocations).
static int has_changed_code(const struct dl_phdr_info *file) {
  for (int i = 0; i < file->dlpi_phnum; i++) {
    if (file->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const ElfW(Dyn) *entry = (const void *)(file->dlpi_addr + file->dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; entry++) {
      if (entry->d_tag == DT_TEXTREL) return 1;
      if (entry->d_tag == DT_FLAGS && entry->d_un.d_val & DF_TEXTREL) return 1;
    }
  }
  return 0;
}

static int release_code(struct dl_phdr_info *file, size_t size, void *context) {
  (void)size, (void)context;
  if (has_changed_code(file)) return 0;
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  for (int i = 0; i < file->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &file->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || segment->p_flags & PF_W) continue;
    uintptr_t start = file->dlpi_addr + segment->p_vaddr;
    uintptr_t end = (start + segment->p_memsz + page - 1) & ~(page - 1);
    start &= ~(page - 1);
    madvise((void *)start, end - start, MADV_DONTNEED);
  }
  return 0;
}

void clinux_release_code(void) {
  dl_iterate_phdr(release_code, NULL);
  if (constants) madvise((void *)constants, constants_end - constants, MADV_DONTNEED);
}

int clinux_semaphore_wait(sem_t *semaphore, int64_t deadline) {
  struct timespec time = {deadline / 1000000000, deadline % 1000000000};
  while (sem_clockwait(semaphore, CLOCK_MONOTONIC, &time))
    if (errno != EINTR) return -errno;
  return 0;
}

// struct sched_attr of the kernel; glibc has none before 2.41.
struct schedule {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  // The length of a turn in ns; 0: the default.
  uint64_t runtime;
  uint64_t deadline;
  uint64_t period;
};

enum { SHORT_TURN = 100000, RESET_ON_FORK = 1 };

int clinux_use_short_turns(int are_short) {
  struct schedule schedule;
  memset(&schedule, 0, sizeof schedule);
  if (syscall(SYS_sched_getattr, 0, &schedule, sizeof schedule, 0) < 0) return -errno;
  if (schedule.policy != SCHED_OTHER) return -EINVAL;
  schedule.flags = RESET_ON_FORK;
  schedule.runtime = are_short ? SHORT_TURN : 0;
  return syscall(SYS_sched_setattr, 0, &schedule, 0) < 0 ? -errno : 0;
}
