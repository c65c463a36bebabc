// Written by scripts/embed-policies from Policies/developer.yaml.

extension BuiltInPolicies {
  static let developer = #"""
    # developer: language servers, MCP servers, notebooks and dev servers, dozens open and two in use.
    #
    # Who is in front follows from activity. A helper that its editor hasn't spoken to for a while is
    # suspended, then leaves memory, however large it is: language servers of a gigabyte are why this
    # policy exists. A byte at its stdin, or a connection, brings it back (docs/waking.md). Nobody is ended
    # for being silent: a lost index or a lost notebook kernel costs minutes.
    #
    # Sizes: B, KB, MB, GB, powers of 1024. Durations: ms, s, m, h. All keys: docs/policy-files.md.

    name: developer
    mode: enforce                       # `shadow` for a day tells what it would free and cost (`dormouse status`)

    memory:
      budget: host                      # watch this machine; 8GB keeps all helpers together within that

    # When memory counts as short. Any condition of a level raises it.
    pressure:
      warning:
        available_below: 20%            # early: a browser and a compiler want theirs at once, and a lot of it
        stall: { some: 10%, window: 2s }  # PSI: something waited for memory for 10 % of two seconds
      urgent:
        available_below: 12%
      critical:
        available_below: 6%
        stall: { full: 20%, window: 2s }  # the desktop stutters
      sustained_for: 1s                 # linking peaks for less
      clear_after: 10s                  # builds come in bursts
      warn_once_per: episode

    foreground:
      mode: activity                      # a request at stdin, traffic, processor time
      max: unlimited                    # as many as you work with
      idle_after: 2m                    # longer than reading a page of code takes
      cpu_below: 3%                     # of one core; file watchers and timers stay below it, indexing doesn't

    background:
      shed_deadline: 5s                 # to drop caches, for those that can
      task_limit: 1h                    # an index or a notebook cell may run on
      suspend_after: 30s
      safe_point:                       # what is waited for before the freeze, at most
        file_locks: 1m                  # package managers and build tools share locks (cargo, gradle, sqlite): who is
                                        # frozen with one stops your build
        hold: 8h                        # a kernel that says X_DORMOUSE_HOLD=1 computes overnight
        after_launch: 0s                # indexing takes processor time, and so isn't idleness; more where it waits
        after_wake: 0s
      heartbeat: never                  # { every: 5m, for: 2s } for servers whose host pings them

    hibernate:
      enabled: true
      max_footprint: unlimited          # no ceiling: large ones are what it is for. About 4 s/GB to be back
      min_footprint: 4MB                # small helpers may stay
      after: 5m                         # a coffee; under pressure at once
      only_if_faster_than_relaunch: false  # a relaunch loses what was opened, indexed and computed
      cooldown: 5m                      # generous: you are working with it again
      demote_after: never               # a notebook kernel isn't worth less for being old
      order: [regret]                   # under pressure those first that give the most for the least waiting
      disk: { budget: 32GB, min_free: 10%, daily_writes: 100GB }  # a workstation's SSD
      compression: { level: 1 }         # zstd, -7…19; higher costs more time than it saves space
      durability: synced                # free memory only when the disk has confirmed the image
      encrypt: false                    # `true`: images are AES-256-GCM, with a key that only the kernel has
      drop_file_pages: false            # `true`: its program leaves RAM, too; a resume reads it from disk again

    watchdog:
      launch: 60s                       # JVMs and large workspaces take their time
      answer: 30s                       # a garbage collection may be in the way
      max_extension: 5m             # EXTEND_TIMEOUT_USEC
      on_timeout: report                   # a debugger stops a process for longer than any deadline

    terminate:
      grace: 5s                         # to write its index
      settle: 1s                        # wait for the freed memory to show before the next victim
      order: [band, regret]             # the least important, then those that are the least waited for

    early_wake:
      within: 30s                       # asked again at once: you were only thinking
      bonus: 20
      halves_every: 1h                  # a working session
      max_idle: 10m                 # asked again too soon again and again, suspend_after and hibernate.after double, up to this

    # What is done at each level, cheapest loss first, one step at a time, until the level falls.
    ladder:
      warning:  [hibernate, purge]      # nobody notices before the next question
      urgent:   [hibernate, purge, warn]  # still nothing is lost
      critical: [hibernate, purge, warn, terminate suspended, terminate background, terminate foreground]
    """#
}
