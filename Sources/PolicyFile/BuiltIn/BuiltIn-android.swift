// Written by scripts/embed-policies from Policies/android.yaml.

extension BuiltInPolicies {
  static let android = #"""
    # android: cached apps, a freezer, and a low memory killer that follows stalls.
    #
    # One worker is in the foreground. A worker that leaves it is asked to trim its memory, and is suspended ten
    # seconds later. Large ones are compacted (here: hibernated; Android compresses them into zram); small ones
    # free too little. When memory is short all workers are asked once at each level (the trim levels). Then
    # cached ones are terminated, the least recently used first, and perceptible ones late.
    #
    # The behaviour is that of AOSP: CachedAppOptimizer (freezer, compaction), ComponentCallbacks2 (trim
    # levels), ProcessList (oom_adj) and lmkd (system/memory/lmkd) with its PSI thresholds. Comments name what
    # is different here.
    #
    # oom_adj in terms of bands: foreground app 0 = band 100; perceptible 200 to previous 700 = background,
    # 30 plus importance; cached 900 to 999 = suspended, 0 plus importance. So importance 80 or so is for
    # workers such as a music player.
    #
    # Sizes: B, KB, MB, GB, powers of 1024. Durations: ms, s, m, h. All keys: docs/policy-files.md.

    name: android
    mode: enforce                       # `shadow`: decisions are logged, not applied; to try a policy

    memory:
      budget: host                      # measure this machine; a size (4GB): the workers share an imaginary phone with it

    # When memory counts as short. lmkd follows stalls, not available memory: a machine may live with little
    # free memory as long as no task waits for it. Any condition of a level raises it.
    pressure:
      warning:                          # TRIM_MEMORY_RUNNING_MODERATE
        stall: { some: 7%, window: 2s } # ro.lmk.psi_partial_stall_ms=70 of a second; the kernel permits an ordinary
                                        # user multiples of 2 s
        available_below: 15%            # for machines without PSI; Android has watermarks there
      urgent:                           # TRIM_MEMORY_RUNNING_LOW
        stall: { some: 20%, window: 2s }  # the 200 ms of ro.config.low_ram devices
        available_below: 10%
      critical:                         # TRIM_MEMORY_RUNNING_CRITICAL
        stall: { full: 70%, window: 2s }  # ro.lmk.psi_complete_stall_ms=700: all tasks wait
        available_below: 5%
      sustained_for: 0s                 # lmkd acts on the first event
      stalls_count_below: 20%           # with this much available, stalls raise the level to warning at most
      terminate_after: 1s               # a shortage must last this long before a worker is terminated
      clear_after: 5s                   # how long a condition must be over
      warn_once_per: level              # onTrimMemory comes once at each level, not with each event

    foreground:
      mode: manual                      # the activity manager chooses the foreground
      max: 1                            # one app is resumed; 2 for a split screen
      idle_after: 60s                   # only with `mode: activity`
      cpu_below: 2%                     # only with `mode: activity`

    background:
      shed_deadline: 5s                 # for onTrimMemory(TRIM_MEMORY_UI_HIDDEN): free what is only shown
      task_limit: 10m                   # a job of JobScheduler has ten minutes
      suspend_after: 10s                # freeze_debounce_timeout: an app is frozen ten seconds after it is cached
      safe_point:                       # the longest waits before the freeze
        file_locks: 10s                 # the freezer skips an app that blocks others with a file lock, and looks again;
                                        # here the worker is suspended with the lock after this time
        hold: 10m                       # a foreground service, for as long as it announces itself
        after_launch: 0s
        after_wake: 10s                 # an unfrozen app gets the whole debounce again
      heartbeat: never                  # alarms, jobs and binder calls thaw an app, the clock alone doesn't

    hibernate:                          # stands for compaction, which frees a cached app's memory there
      enabled: true
      max_footprint: unlimited          # compaction has no upper limit
      min_footprint: 12MB               # compact_full_rss_throttle_kb = 12000: a smaller app isn't compacted
      after: 30s                        # compaction soon follows the freezer; a disk justifies a longer wait
      only_if_faster_than_relaunch: true  # zram is always faster than a cold start, a disk isn't
      cooldown: 60s                     # compact_throttle: the same app isn't compacted again at once
      demote_after: 24h                 # after an unused day the app standby bucket falls
      order: [recency, footprint]       # the least recently used of the cached first
      disk: { budget: 4GB, min_free: 5%, daily_writes: 10GB }  # zram is about a phone's RAM; writes wear out flash
      compression: { level: 1 }         # zram's lz4 is faster and weaker
      durability: synced                # memory is freed when the disk has confirmed the image
      encrypt: false                    # `true`: images are AES-256-GCM, with a key in the kernel's keyring
      drop_file_pages: false            # `true`: the program's pages leave RAM too; a resume reads them from disk

    watchdog:
      launch: 10s                       # PROC_START_TIMEOUT: a process that hasn't attached by then is killed
      answer: 5s                        # KEY_DISPATCHING_TIMEOUT, after which an app is Not Responding
      max_extension: 20s                # the time of a broadcast in the background
      on_timeout: terminate             # the phone asks its user first; here it isn't asked. `report` only reports it

    terminate:
      grace: 0s                         # lmkd sends SIGKILL: a cached app saved its state when it left
      settle: 500ms                     # wait for freed memory to show; lmkd waits for the death that it caused
      order: [band, recency, footprint]  # oom_adj, of equal ones the least recently used. `[band, footprint]` is
                                        # ro.lmk.kill_heaviest_task

    early_wake:
      within: 10s                       # back within seconds: the user only looked at something else
      bonus: 15                         # the "previous app" is kept longer than other cached ones
      halves_every: 1h
      max_idle: never                   # the freezer waits the same time for every app

    # What is done at each level, the smallest loss first, one step at a time, until the level falls.
    ladder:
      warning:  [hibernate, purge, warn]  # compact, take what is offered, ask all
      urgent:   [hibernate, purge, warn, terminate suspended]  # then cached apps, one at a time
      critical: [purge, warn, terminate suspended, terminate background, terminate foreground]  # down to oom_adj 0
    """#
}
