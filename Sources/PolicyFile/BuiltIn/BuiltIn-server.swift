// Written by scripts/embed-policies from Policies/server.yaml.

extension BuiltInPolicies {
  static let server = #"""
    # server: many services on one machine, each busy now and then.
    #
    # No screen: a service is in front while it is used, as many at once as are. One that nobody talks
    # to goes to the background, is suspended, and leaves memory; a connection, or data at one that is
    # open, brings it back, and so do its own timers of a minute or more, when they are due
    # (docs/waking.md). The thresholds are those of ios-5 (XNU's 15, 10 and 5 % available); what differs
    # is who is in front, and that a disk here is faster and larger than a phone's flash.
    #
    # Sizes: B, KB, MB, GB, powers of 1024. Durations: ms, s, m, h. All keys: docs/policy-files.md.

    name: server
    mode: enforce                       # begin with `shadow` on a machine that matters: it reports and does nothing

    memory:
      budget: host                      # watch this machine; a size limits the workers together to that much

    # When memory counts as short. Any condition of a level raises it.
    pressure:
      warning:
        available_below: 15%
        stall: { some: 10%, window: 2s }  # PSI: some task waited for memory for 10 % of two seconds
      urgent:
        available_below: 10%
      critical:
        available_below: 5%
        stall: { full: 10%, window: 2s }  # nobody could work at all for that long
      sustained_for: 1s                 # servers have short peaks: a deployment, a report
      clear_after: 10s                  # and long tails
      warn_once_per: episode            # dropping caches twice costs twice and gives once

    foreground:
      mode: activity                      # traffic, processor time, open tasks: whoever works is in front
      max: unlimited                    # everybody who works; nobody displaces anybody
      idle_after: 60s                   # quiet for this long means idle. Longer than the pauses within one session
      cpu_below: 2%                     # of one core: housekeeping timers stay below it, work doesn't

    background:
      shed_deadline: 5s                 # to drop caches and say so, or to come to rest
      task_limit: 10m                   # a backup or a job that was announced may run so long before suspension
      suspend_after: 30s                # no hurry: being suspended saves processor time only
      wake_for_timers: 1m               # jobs by the clock run; a runtime's own housekeeping, every second or so, wakes nobody
      safe_point:                       # what is waited for before the freeze, at most
        file_locks: 30s                 # others may wait for a lock that a frozen service holds. One that keeps it for
                                        # good (databases do) is waited for once
        hold: 1h                        # a service that says X_DORMOUSE_HOLD=1 knows what for
        after_launch: 0s                # idle_after and suspend_after are enough; more for a service that fills its
                                        # caches for minutes
        after_wake: 0s
      heartbeat: never                  # { every: 5m, for: 2s } for a service that must renew leases or answer pings

    hibernate:
      enabled: true
      max_footprint: 256MB              # roughly half a second to write and a quarter to be back (64 MB: 0.1 s and
                                        # 0.05 s on two cores); more makes the first request after a pause wait. `unlimited` where nobody waits
      min_footprint: 4MB                # a server has larger fish
      after: 2m                         # suspended for so long, or at once under pressure
      only_if_faster_than_relaunch: true  # some services start faster than they resume
      cooldown: 60s                     # after a wake: a visitor seldom comes alone
      demote_after: 168h                # a service that nobody has called for a week is the first to go
      order: [regret]                   # under pressure those first that give the most for the least waiting
      disk:
        budget: 16GB                    # for all images together
        min_free: 10%                   # of the file system, that stay free whatever the budget says
        daily_writes: 100GB             # an SSD for servers takes this for years; 10GB for a laptop's
      overlay: true                     # write only what has changed; the last image stays on disk for that
      compression:
        level: 1                        # zstd, -7…19; higher costs more time than it saves space
      drop_file_pages: false            # `true`: its program leaves RAM, too; a resume reads it from disk again
      durability: synced                # free memory only when the disk has confirmed the image; `cached`: before
      encrypt: false                    # `true`: images are AES-256-GCM, with a key that only the kernel has

    watchdog:
      launch: 60s                       # services open databases and warm up; phones had 20s
      answer: 10s                       # from a request to drop caches to its answer, if the service ever answered one
      max_extension: 10m            # migrations at start ask for more time (EXTEND_TIMEOUT_USEC), and get it
      on_timeout: report                   # what serves people is ended by people; `terminate` as on a phone

    terminate:
      grace: 10s                        # to finish requests in flight; Docker's value
      settle: 1s                        # wait for the freed memory to show before the next victim
      order: [band, recency, footprint]  # the least important, then the longest unused, then the largest

    early_wake:
      within: 30s                       # called again so soon: its pauses are longer than idle_after
      bonus: 15
      halves_every: 1h                  # services have the habits of their users
      max_idle: 15m                 # called again too soon again and again, suspend_after and hibernate.after double, up to this

    # What is done at each level, cheapest loss first, one step at a time, until the level falls.
    ladder:
      warning:  [hibernate]             # nobody notices, but for the next request to those
      urgent:   [hibernate, purge, warn, terminate suspended]  # ask before the first one is lost
      critical: [purge, terminate suspended, warn, terminate background, terminate foreground]
    """#
}
