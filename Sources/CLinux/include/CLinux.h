// Thin shims for functions that Swift can't call: variadic functions (ptrace, syscall, ioctl),
// macros, and the one function that runs between fork and exec. They make no decisions.
//
// Convention: every shim returns a value >= 0, or -errno (or a checksum). A caller never reads
// errno itself, because Swift may run code (a retain, a release) between the call and the read of
// errno.
#ifndef CLINUX_H
#define CLINUX_H

#include "clinux_checksum.h"
#include "clinux_epoll.h"
#include "clinux_files.h"
#include "clinux_inputs.h"
#include "clinux_keyring.h"
#include "clinux_memory.h"
#include "clinux_passing.h"
#include "clinux_ptrace.h"
#include "clinux_purgeable.h"
#include "clinux_registers.h"
#include "clinux_spawn.h"
#include "clinux_system.h"
#include "clinux_threads.h"
#include "clinux_tracking.h"
#include "clinux_userfault.h"
#include "clinux_waiting.h"

#endif
