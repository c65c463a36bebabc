// Written by scripts/embed-policies from Policies/standard.yaml.

extension BuiltInPolicies {
  static let standard = #"""
    # standard: what Dormouse does if you name no policy. For everything that people run side by side.
    #
    # A worker is in the foreground while it is used, any number at once. About a minute after its last use it is
    # suspended. If it is small, it is hibernated then; a larger one two minutes later. A connection, data on an open
    # one, a byte at its stdin, or a timer of its own wakes it (docs/waking.md). No worker is terminated before memory is
    # nearly used up, and then only those that can't be hibernated.
    #
    # Why these values, and how they compare: docs/policy-files.md. A key that another policy file leaves out has the
    # value of ios-5, not of this file; write `extends: standard` for these.
    #
    # Sizes: B, KB, MB, GB, powers of 1024. Durations: ms, s, m, h. All keys: docs/policy-files.md.

    name: standard
    mode: enforce                       # `shadow` for a day shows what it would free and cost (`dormouse status`)

    memory:
      budget: host                      # measure this machine; a size limits the workers together to that much

    # When memory counts as short. Any condition of a level raises it.
    pressure:
      warning:
        available_below: 15%
        stall: { some: 10%, window: 2s }  # PSI: some task waited for memory for 10 % of two seconds
      urgent:
        available_below: 10%
      critical:
        available_below: 5%
        stall: { full: 10%, window: 2s }  # all tasks waited for that long
      sustained_for: 1s                 # a compiler's peak is shorter
      stalls_count_below: 20%           # with this much available, stalls raise the level to warning at most
      terminate_after: 1s               # a shortage must last this long before a worker is terminated
      clear_after: 10s                  # peaks come in groups
      warn_once_per: episode            # emptying caches twice costs twice and frees once

    foreground:
      mode: activity                    # requests, traffic, processor time and open tasks put a worker in the foreground
      max: unlimited                    # no worker displaces another one
      idle_after: 45s                   # quiet for this long means idle; longer than the pauses within one use
      cpu_below: 2%                     # of one core: housekeeping timers stay below it, work doesn't

    background:
      shed_deadline: 5s                 # to empty caches and answer, for workers that can
      task_limit: 1h                    # an announced backup, job or notebook cell may delay suspension by this
      suspend_after: 15s                # with idle_after a minute. A suspended worker continues in a millisecond
      wake_for_timers: 45s              # jobs by the clock run: one that works more often than that is in use anyway.
                                        # Runtimes' housekeeping (gunicorn's 15s, node's 30s) wakes no worker
      safe_point:                       # the longest waits before the freeze
        file_locks: 30s                 # other processes may wait for a lock that a suspended worker holds. A lock that is
                                        # always held (databases have one) is waited for once
        hold: 1h                        # how long X_DORMOUSE_HOLD=1 keeps a worker awake
        after_launch: 0s                # a worker that loads or indexes uses processor time, and so isn't idle
        after_wake: 0s
      heartbeat: never                  # { every: 5m, for: 2s } for a worker that must renew leases or answer pings

    hibernate:
      enabled: true
      max_footprint: unlimited          # of any size: the large ones are worth the most. About 4 s a GB to resume
      min_footprint: 1MB                # a smaller worker frees too little
      at_once_up_to: 16MB               # a resume of this size isn't noticed (iOS 5's limit): hibernated when suspended
      after: 2m                         # for larger workers, time suspended; under pressure at once
      only_if_faster_than_relaunch: false  # a relaunch loses what was opened, indexed and computed
      resume: auto                      # its working set first, unless all memory at once was faster before
      cooldown: 60s                     # after a wake: more uses usually follow. None after a timer of its own
      demote_after: 168h                # a worker without a use for a week is terminated first
      order: [regret]                   # under pressure first those that free the most for the least waiting
      disk:
        budget: 16GB                    # for all images together
        min_free: 10%                   # of the file system, that stays free whatever the budget is
        daily_writes: 50GB              # an SSD of 500 GB takes this for eight years, and few machines write as much
      overlay: true                     # write only what has changed; the last image stays on disk for that
      compression:
        level: 1                        # zstd, -7…19; higher costs more time than it saves space
      drop_file_pages: false            # `true`: the program's pages leave RAM too; a resume reads them from disk
      durability: synced                # memory is freed when the disk has confirmed the image; `cached`: before that
      encrypt: false                    # `true`: images are AES-256-GCM, with a key in the kernel's keyring

    watchdog:
      launch: 60s                       # databases, JVMs and large workspaces need this
      answer: 30s                       # a garbage collection may delay an answer
      max_extension: 10m                # migrations at start ask for more time (EXTEND_TIMEOUT_USEC)
      on_timeout: report                # you decide what happens to a worker that is late; `terminate` as on a phone

    terminate:
      grace: 10s                        # to finish open requests and to save; Docker's value
      settle: 1s                        # wait for freed memory to show before the next termination
      order: [band, regret]             # the least important, then those that cost the least waiting

    early_wake:                         # a worker that is needed soon after it was put to sleep wasn't idle
      within: 30s
      bonus: 15                         # points of band that it gains each time
      halves_every: 1h                  # people's habits last for hours
      max_idle: 10m                     # after repeated early wakes its idle times double, up to this

    # What is done at each level, the smallest loss first, one step at a time, until the level falls.
    ladder:
      warning:  [hibernate, purge]      # only the next use of these workers is slower
      urgent:   [hibernate, purge, warn]  # still nothing is lost
      critical: [hibernate, purge, warn, terminate suspended, terminate background, terminate foreground]
    """#
}
