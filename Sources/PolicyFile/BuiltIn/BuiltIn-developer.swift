// Written by scripts/embed-policies from Policies/developer.yaml.

extension BuiltInPolicies {
  static let developer = #"""
    # developer: language servers, MCP servers, notebooks and dev servers, dozens open and two in use.
    #
    # Activity decides which workers are in the foreground. A helper without a message from its editor is
    # suspended, then hibernated, however large it is: this policy is for language servers of a gigabyte. A byte
    # at its stdin, or a connection, wakes it (docs/waking.md). No worker is terminated for a missed answer: a
    # lost index or a lost notebook kernel costs minutes.
    #
    # Sizes: B, KB, MB, GB, powers of 1024. Durations: ms, s, m, h. All keys: docs/policy-files.md.

    name: developer
    mode: enforce                       # `shadow` for a day shows what it would free and cost (`dormouse status`)

    memory:
      budget: host                      # measure this machine; 8GB limits all helpers together to that

    # When memory counts as short. Any condition of a level raises it.
    pressure:
      warning:
        available_below: 20%            # early: a browser and a compiler need a lot at once
        stall: { some: 10%, window: 2s }  # PSI: some task waited for memory for 10 % of two seconds
      urgent:
        available_below: 12%
      critical:
        available_below: 6%
        stall: { full: 20%, window: 2s }  # the desktop stutters
      sustained_for: 1s                 # a linker's peak is shorter
      stalls_count_below: 20%           # with this much available, stalls raise the level to warning at most
      terminate_after: 1s               # a shortage must last this long before a worker is terminated
      clear_after: 10s                  # builds come in bursts
      warn_once_per: episode

    foreground:
      mode: activity                    # a request at stdin, traffic, processor time
      max: unlimited                    # as many as you work with
      idle_after: 2m                    # longer than reading a page of code takes
      cpu_below: 3%                     # of one core; file watchers and timers stay below it, indexing doesn't

    background:
      shed_deadline: 5s                 # to empty caches, for helpers that can
      task_limit: 1h                    # for an index or a notebook cell
      suspend_after: 30s
      safe_point:                       # the longest waits before the freeze
        file_locks: 1m                  # package managers and build tools share locks (cargo, gradle, sqlite): a helper
                                        # that is suspended with one stops your build
        hold: 8h                        # a notebook kernel with X_DORMOUSE_HOLD=1 computes overnight
        after_launch: 0s                # indexing uses processor time, and so isn't idleness; longer if it waits instead
        after_wake: 0s
      heartbeat: never                  # { every: 5m, for: 2s } for servers whose host pings them

    hibernate:
      enabled: true
      max_footprint: unlimited          # large helpers are what it is for. About 4 s a GB to resume
      min_footprint: 4MB                # a smaller helper frees too little
      after: 5m                         # a coffee; under pressure at once
      only_if_faster_than_relaunch: false  # a relaunch loses what was opened, indexed and computed
      cooldown: 5m                      # long: you are working with it again
      demote_after: never               # a notebook kernel isn't worth less for being old
      order: [regret]                   # under pressure first those that free the most for the least waiting
      disk: { budget: 32GB, min_free: 10%, daily_writes: 100GB }  # a workstation's SSD
      compression: { level: 1 }         # zstd, -7…19; higher costs more time than it saves space
      durability: synced                # memory is freed when the disk has confirmed the image
      encrypt: false                    # `true`: images are AES-256-GCM, with a key in the kernel's keyring
      drop_file_pages: false            # `true`: the program's pages leave RAM too; a resume reads them from disk

    watchdog:
      launch: 60s                       # JVMs and large workspaces need this
      answer: 30s                       # a garbage collection may delay an answer
      max_extension: 5m                 # EXTEND_TIMEOUT_USEC
      on_timeout: report                # a debugger stops a process for longer than any deadline

    terminate:
      grace: 5s                         # to write its index
      settle: 1s                        # wait for freed memory to show before the next termination
      order: [band, regret]             # the least important, then those that cost the least waiting

    early_wake:
      within: 30s                       # used again at once: you were only thinking
      bonus: 20
      halves_every: 1h                  # a working session
      max_idle: 10m                     # after repeated early wakes suspend_after and hibernate.after double, up to this

    # What is done at each level, the smallest loss first, one step at a time, until the level falls.
    ladder:
      warning:  [hibernate, purge]      # not noticed before the next request
      urgent:   [hibernate, purge, warn]  # still nothing is lost
      critical: [hibernate, purge, warn, terminate suspended, terminate background, terminate foreground]
    """#
}
