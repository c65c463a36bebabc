// Written by scripts/embed-policies from Policies/server.yaml.

extension BuiltInPolicies {
  static let server = #"""
    # server: many services on one machine, each in use now and then.
    #
    # A service is in the foreground while it is used, any number at once. An idle one enters the background,
    # is suspended, and is hibernated. A connection, or data on an open one, wakes it, and so do its own timers
    # of a minute or more when they are due (docs/waking.md). The thresholds are those of ios-5 (XNU's 15, 10
    # and 5 % available). Different are the choice of the foreground, and that a disk here is faster and larger
    # than a phone's flash.
    #
    # Sizes: B, KB, MB, GB, powers of 1024. Durations: ms, s, m, h. All keys: docs/policy-files.md.

    name: server
    mode: enforce                       # on a machine that matters begin with `shadow`: decisions are logged, not applied

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
      sustained_for: 1s                 # servers have short peaks: a deployment, a report
      stalls_count_below: 20%           # with this much available, stalls raise the level to warning at most
      terminate_after: 1s               # a shortage must last this long before a worker is terminated
      clear_after: 10s                  # and peaks that end slowly
      warn_once_per: episode            # emptying caches twice costs twice and frees once

    foreground:
      mode: activity                    # traffic, processor time and open tasks put a worker in the foreground
      max: unlimited                    # no worker displaces another one
      idle_after: 60s                   # quiet for this long means idle; longer than the pauses within one session
      cpu_below: 2%                     # of one core: housekeeping timers stay below it, work doesn't

    background:
      shed_deadline: 5s                 # to empty caches and answer, or to come to rest
      task_limit: 10m                   # an announced backup or job may delay suspension by this
      suspend_after: 30s                # suspension saves processor time only, so it can wait
      wake_for_timers: 1m               # jobs by the clock run; a runtime's housekeeping every second wakes no worker
      safe_point:                       # the longest waits before the freeze
        file_locks: 30s                 # other processes may wait for a lock that a suspended service holds. A lock that is
                                        # always held (databases have one) is waited for once
        hold: 1h                        # how long X_DORMOUSE_HOLD=1 keeps a service awake
        after_launch: 0s                # idle_after and suspend_after are enough; longer for a service that fills its
                                        # caches for minutes
        after_wake: 0s
      heartbeat: never                  # { every: 5m, for: 2s } for a service that must renew leases or answer pings

    hibernate:
      enabled: true
      max_footprint: 256MB              # roughly 0.5 s to write and 0.25 s to resume (64 MB: 0.1 s and 0.05 s on two
                                        # cores); a larger worker's first request after a pause waits longer
      min_footprint: 4MB                # a smaller service frees too little
      after: 2m                         # time suspended; under pressure at once
      only_if_faster_than_relaunch: true  # some services start faster than they resume
      cooldown: 60s                     # after a wake: more requests usually follow
      demote_after: 168h                # a service without a request for a week is terminated first
      order: [regret]                   # under pressure first those that free the most for the least waiting
      disk:
        budget: 16GB                    # for all images together
        min_free: 10%                   # of the file system, that stays free whatever the budget is
        daily_writes: 100GB             # a server's SSD takes this for years; 10GB for a laptop's
      overlay: true                     # write only what has changed; the last image stays on disk for that
      compression:
        level: 1                        # zstd, -7…19; higher costs more time than it saves space
      drop_file_pages: false            # `true`: the program's pages leave RAM too; a resume reads them from disk
      durability: synced                # memory is freed when the disk has confirmed the image; `cached`: before that
      encrypt: false                    # `true`: images are AES-256-GCM, with a key in the kernel's keyring

    watchdog:
      launch: 60s                       # services open databases and fill caches; phones had 20s
      answer: 10s                       # from a request to free memory to its answer, for services that answered before
      max_extension: 10m                # migrations at start ask for more time (EXTEND_TIMEOUT_USEC)
      on_timeout: report                # you decide what happens to a service; `terminate` as on a phone

    terminate:
      grace: 10s                        # to finish open requests; Docker's value
      settle: 1s                        # wait for freed memory to show before the next termination
      order: [band, recency, footprint]  # the least important, then the longest unused, then the largest

    early_wake:
      within: 30s                       # a request this soon: the service's pauses are longer than idle_after
      bonus: 15
      halves_every: 1h                  # services have the habits of their users
      max_idle: 15m                     # after repeated early wakes suspend_after and hibernate.after double, up to this

    # What is done at each level, the smallest loss first, one step at a time, until the level falls.
    ladder:
      warning:  [hibernate]             # only the next request to these services is slower
      urgent:   [hibernate, purge, warn, terminate suspended]  # ask before the first one is terminated
      critical: [purge, terminate suspended, warn, terminate background, terminate foreground]
    """#
}
