// Changes its memory all the time, also while its memory is copied and leaves RAM. missing.h
// describes the conversation; `run` ends the changes, and says whether all memory is right.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "missing.h"

static unsigned char contents[PAGE] __attribute__((aligned(PAGE)));
static int ends[2], file;
static atomic_int is_over, failures;
static pthread_t thread;
static uint64_t random_state = 1;

static int any_page(void) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int)(random_state >> 33) % (PAGES - FEW);
}

// Gives `contents` new contents for a page.
static void make(int page) {
  seeds[page] = ++last_seed;
  for (size_t i = 0; i < PAGE / 8; i++) ((uint64_t *)contents)[i] = word(seeds[page], i);
}

static void write_memory(void) { rewrite(any_page()); }

static void read_from_pipe(void) {
  int page = any_page();
  make(page);
  if (write(ends[1], contents, PAGE) != PAGE || read(ends[0], at(page), PAGE) != PAGE) failures++;
}

// The disk may write to memory itself then.
static void read_from_disk(void) {
  int page = any_page();
  make(page);
  if (pwrite(file, contents, PAGE, 0) != PAGE || pread(file, at(page), PAGE, 0) != PAGE) failures++;
}

static void write_from_outside(void) {
  int page = any_page();
  make(page);
  struct iovec from = {contents, PAGE}, to = {at(page), PAGE};
  if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) != PAGE) failures++;
}

static void drop(void) {
  int page = any_page();
  if (madvise(at(page), FEW * PAGE, MADV_DONTNEED)) failures++;
  for (int i = 0; i < FEW; i++) seeds[page + i] = 0;
  rewrite(any_page());
}

static void map_again(void) {
  int page = any_page();
  map_pages(at(page), FEW * PAGE, MAP_FIXED);
  for (int i = 0; i < FEW; i++) seeds[page + i] = 0;
  rewrite(page + 1);
}

// Two pages change places, by way of a third address.
static void exchange(void) {
  int one = any_page(), other = any_page(), flags = MREMAP_MAYMOVE | MREMAP_FIXED;
  if (one == other) return;
  void *third = map_pages(NULL, PAGE, 0);
  if (mremap(at(one), PAGE, PAGE, flags, third) != third) failures++;
  if (mremap(at(other), PAGE, PAGE, flags, at(one)) != at(one)) failures++;
  if (mremap(third, PAGE, PAGE, flags, at(other)) != at(other)) failures++;
  uint64_t seed = seeds[one];
  seeds[one] = seeds[other];
  seeds[other] = seed;
}

static void (*const all[])(void) = {
  write_memory, read_from_pipe, read_from_disk, write_from_outside, drop, map_again, exchange,
};
static void (*change)(void);  // NULL: all of them

static void *change_memory(void *argument) {
  for (unsigned i = 0; !is_over; i++) {
    (change ? change : all[i % (sizeof all / sizeof *all)])();
    usleep(100);
  }
  return argument;
}

static void begin(void (*what)(void)) {
  char path[256];
  snprintf(path, sizeof path, "%s/missing-%d", directory, (int)getpid());
  file = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
  // Some file systems have no O_DIRECT.
  if (file < 0) file = open(path, O_RDWR | O_CREAT, 0600);
  unlink(path);
  change = what;
  if (file < 0 || pipe(ends) || pthread_create(&thread, NULL, change_memory, NULL)) exit(3);
}

static void begin_to_write(void) { begin(write_memory); }
static void begin_to_read(void) { begin(read_from_pipe); }
static void begin_with_disk(void) { begin(read_from_disk); }
static void begin_from_outside(void) { begin(write_from_outside); }
static void begin_to_drop(void) { begin(drop); }
static void begin_to_map(void) { begin(map_again); }
static void begin_to_exchange(void) { begin(exchange); }
static void begin_with_all(void) { begin(NULL); }

static void make_pipe(void) { if (pipe(ends)) exit(3); }

// Writes memory that isn't in RAM to a pipe. A process that counts the bytes in the pipe waits for
// the pages, too.
static const char *pump(void) {
  for (int page = 0; page < PAGES; page++) {
    CHECK(write(ends[1], at(page), PAGE) == PAGE);
    CHECK(read(ends[0], contents, PAGE) == PAGE && has(contents, seeds[page]));
  }
  return NULL;
}

static const char *end(void) {
  is_over = 1;
  pthread_join(thread, NULL);
  CHECK(!failures);
  return check_region();
}

static const struct test tests[] = {
  {"write_memory", begin_to_write, end},
  {"read_from_pipe", begin_to_read, end},
  {"read_from_disk", begin_with_disk, end},
  {"write_from_outside", begin_from_outside, end},
  {"drop_memory", begin_to_drop, end},
  {"map_again", begin_to_map, end},
  {"exchange", begin_to_exchange, end},
  {"change_all", begin_with_all, end},
  {"pump", make_pipe, pump},
};

int main(int count, char **arguments) {
  return converse(count, arguments, tests, sizeof tests / sizeof *tests);
}
