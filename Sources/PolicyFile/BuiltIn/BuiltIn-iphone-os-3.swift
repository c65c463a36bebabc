// Written by scripts/embed-policies from Policies/iphone-os-3.yaml.

extension BuiltInPolicies {
  static let iphoneOs3 = #"""
    # iphone-os-3: before multitasking.
    #
    # Nobody is suspended or hibernated: a worker runs or it doesn't exist. When memory gets short there
    # are three levels, as "Understanding Memory Management on iPhone" (WWDC 2009, 416) tells them:
    # everybody is warned; the background exits; the front one is terminated. For programs that must
    # always answer at once, and that know how to free memory when asked.
    #
    # Sizes: B, KB, MB, GB, powers of 1024. Durations: ms, s, m, h. All keys: docs/policy-files.md.

    name: iphone-os-3
    mode: enforce                       # `shadow` decides, explains and reports, and does nothing: a rehearsal

    memory:
      budget: host                      # watch this machine; a size (128MB was an iPhone 3G's RAM) lets the workers play
                                        # a device with that much

    # When memory counts as short. Any condition of a level raises it.
    pressure:
      warning:
        available_below: 15%            # time enough for a warning to be answered before the next level
      urgent:
        available_below: 10%
      critical:
        available_below: 5%             # the last line: below it the system itself would fail
      sustained_for: 0s                 # act at once; there was no swap to win time with
      clear_after: 5s                   # how long it must be over before it counts as over
      warn_once_per: episode            # didReceiveMemoryWarning came once

    foreground:
      mode: manual                        # a person or program says who is in front
      max: 1                            # one app has the screen
      idle_after: 60s                   # only with `mode: activity`
      cpu_below: 2%                     # only with `mode: activity`

    background:
      shed_deadline: 5s                 # to answer a warning, which is measured by what it gave back
      task_limit: 10m                   # nothing to hold off here: nobody is suspended
      suspend_after: never              # suspension came with iOS 4
      safe_point: { file_locks: 10s, hold: 10m, after_launch: 0s, after_wake: 0s }  # only for those suspended by hand
      heartbeat: never

    hibernate:
      enabled: false                    # and hibernation is iOS 5's
      max_footprint: 16MB               # the keys from here on only count where a worker's own policy enables it
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
      answer: 10s                       # from a warning to its answer, for workers that have shown that they answer
      max_extension: 0s             # there was no asking for more time
      on_timeout: terminate                # as the phone did; `report` only says so in the journal

    terminate:
      grace: 2s                         # from SIGTERM to SIGKILL: save and go
      settle: 500ms                     # wait for the freed memory to show before the next victim
      order: [band, footprint]          # the least important first, and of those the largest

    early_wake:
      within: 0s                        # nobody is put away for idleness here, so nobody can be idle by mistake
      bonus: 0
      halves_every: 10m
      max_idle: never

    # What is done at each level, one step at a time, until the level falls.
    ladder:
      warning:  [warn]                  # didReceiveMemoryWarning, to everybody
      urgent:   [terminate suspended, terminate background]  # the background exits (suspended: only those that
                                        # somebody suspended by hand)
      critical: [terminate suspended, terminate background, terminate foreground]  # the front one goes last
    """#
}
