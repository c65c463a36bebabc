// Has 1 MB of random bytes, which compression leaves recognisable.
//
//   secret      prints `ready`, then the first 32 bytes as hexadecimal digits, a line each
// On stdin, a line each: `show` prints them again. End of input ends it.
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

enum { LENGTH = 1 << 20 };

int main(void) {
  unsigned char *secret = malloc(LENGTH);
  for (size_t done = 0; secret && done < LENGTH;) {
    ssize_t got = getrandom(secret + done, LENGTH - done, 0);
    if (got < 0) return 2;
    done += (size_t)got;
  }
  char line[64];
  puts("ready");
  do {
    for (int i = 0; i < 32; i++) printf("%02x", secret[LENGTH / 2 + i]);
    puts("");
    fflush(stdout);
  } while (fgets(line, sizeof line, stdin));
  return 0;
}
