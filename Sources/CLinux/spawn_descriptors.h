// For spawn.c alone.
#ifndef SPAWN_DESCRIPTORS_H
#define SPAWN_DESCRIPTORS_H

#include "clinux_spawn.h"

int clinux_above_standard(int fd);
// Returns -1 and sets errno if it fails. The report pipe may get another number.
int clinux_renumber(const struct clinux_terms *terms, int *report);
void clinux_close_others(const struct clinux_spawn *what, int report);

#endif
