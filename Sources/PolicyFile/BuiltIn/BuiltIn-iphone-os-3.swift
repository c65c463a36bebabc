// Written by scripts/embed-policies from Policies/iphone-os-3.yaml.

extension BuiltInPolicies {
  static let iphoneOs3 = #"""
    # iphone-os-3: before multitasking.
    #
    # No worker is suspended or hibernated: it runs or it doesn't exist. When memory is short there are three
    # levels, as in "Understanding Memory Management on iPhone" (WWDC 2009, 416): all workers are warned, the
    # background is terminated, the foreground is terminated. For programs that must always answer at once, and
    # that free memory when asked.
    #
    # Sizes: B, KB, MB, GB, powers of 1024. Durations: ms, s, m, h. All keys: docs/policy-files.md.

    name: iphone-os-3
    mode: enforce                       # `shadow`: decisions are logged, not applied; to try a policy

    memory:
      budget: host                      # measure this machine; a size (128MB was an iPhone 3G's RAM): the workers share
                                        # an imaginary device with that much

    # When memory counts as short. Any condition of a level raises it.
    pressure:
      warning:
        available_below: 15%            # early enough for an answer to the warning before the next level
      urgent:
        available_below: 10%
      critical:
        available_below: 5%             # the last line: below it the system itself would fail
      sustained_for: 0s                 # act at once; there was no swap to win time
      terminate_after: 1s               # a shortage must last this long before a worker is terminated
      clear_after: 5s                   # how long a condition must be over
      warn_once_per: episode            # didReceiveMemoryWarning came once

    foreground:
      mode: manual                      # you or a program choose the foreground
      max: 1                            # one app has the screen
      idle_after: 60s                   # only with `mode: activity`
      cpu_below: 2%                     # only with `mode: activity`

    background:
      shed_deadline: 5s                 # to answer a warning; what it freed is measured
      task_limit: 10m                   # has no effect here: no worker is suspended
      suspend_after: never              # suspension came with iOS 4
      safe_point: { file_locks: 10s, hold: 10m, after_launch: 0s, after_wake: 0s }  # for `dormouse suspend` only
      heartbeat: never

    hibernate:
      enabled: false                    # hibernation came with iOS 5
      max_footprint: 16MB               # the keys from here on count only if a worker's own policy enables it
      min_footprint: 1MB
      after: never
      only_if_faster_than_relaunch: true
      cooldown: 45s
      demote_after: never
      order: [footprint]
      disk: { budget: 2GB, min_free: 5%, daily_writes: 10GB }
      overlay: true
      compression: { level: 1 }
      durability: synced
      encrypt: false
      drop_file_pages: false

    watchdog:
      launch: 20s                       # from start to readiness: iPhone OS killed what took longer
      answer: 10s                       # from a warning to its answer, for workers that have answered before
      max_extension: 0s                 # apps couldn't ask for more time
      on_timeout: terminate             # as the phone did; `report` only writes it to the journal

    terminate:
      grace: 2s                         # from SIGTERM to SIGKILL
      settle: 500ms                     # wait for freed memory to show before the next termination
      order: [band, footprint]          # the least important first, and of those the largest

    early_wake:
      within: 0s                        # no worker is put to sleep for idleness here, so none wakes early
      bonus: 0
      halves_every: 10m
      max_idle: never

    # What is done at each level, one step at a time, until the level falls.
    ladder:
      warning:  [warn]                  # didReceiveMemoryWarning, to all
      urgent:   [terminate suspended, terminate background]  # the background exits (suspended: only workers that you
                                        # have suspended)
      critical: [terminate suspended, terminate background, terminate foreground]  # the foreground last
    """#
}
