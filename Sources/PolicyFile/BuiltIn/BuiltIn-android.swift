// Written by scripts/embed-policies from Policies/android.yaml.

extension BuiltInPolicies {
  static let android = #"""
    # android: cached apps, a freezer, and a low memory killer that goes by stalls.
    #
    # One worker is in front. One that leaves is told to trim its memory, and ten seconds later it is
    # frozen. What is large is compacted (here: hibernated; Android compresses it into zram), what is small
    # isn't worth it. When memory gets short everybody is told once at each level (the trim levels), and
    # then the cached go, the least recently used first; what somebody perceives goes late.
    #
    # The behaviour is that of AOSP: CachedAppOptimizer (freezer, compaction), ComponentCallbacks2 (trim
    # levels), ProcessList (oom_adj) and lmkd (system/memory/lmkd) with its PSI thresholds. What doesn't
    # carry over is said beside it.
    #
    # oom_adj in terms of bands: foreground app 0 = band 100; perceptible 200 to previous 700 = background,
    # 30 plus importance; cached 900 to 999 = suspended, 0 plus importance. So importance 80 or so is for
    # what plays music.
    #
    # Sizes: B, KB, MB, GB, powers of 1024. Durations: ms, s, m, h. All keys: docs/policy-files.md.

    name: android
    mode: enforce                       # `shadow` decides, explains and reports, and does nothing: a rehearsal

    memory:
      budget: host                      # watch this machine; a size (4GB) lets the workers play a phone with that much

    # When memory counts as short. lmkd goes by stalls, not by what is available: a machine may live with
    # little free memory as long as nobody waits for it. Any condition of a level raises it.
    pressure:
      warning:                          # TRIM_MEMORY_RUNNING_MODERATE
        stall: { some: 7%, window: 2s } # ro.lmk.psi_partial_stall_ms=70 of a second; 2 s is what the kernel lets an
                                        # ordinary user watch
        available_below: 15%            # a guard for machines without PSI; Android has watermarks there
      urgent:                           # TRIM_MEMORY_RUNNING_LOW
        stall: { some: 20%, window: 2s }  # the 200 ms of ro.config.low_ram devices
        available_below: 10%
      critical:                         # TRIM_MEMORY_RUNNING_CRITICAL
        stall: { full: 70%, window: 2s }  # ro.lmk.psi_complete_stall_ms=700: nobody gets on
        available_below: 5%
      sustained_for: 0s                 # lmkd acts on the first event
      clear_after: 5s                   # how long it must be over before it counts as over
      warn_once_per: level              # onTrimMemory comes anew with each level, not with each event

    foreground:
      mode: manual                        # the activity manager says who is in front
      max: 1                            # one app is resumed; 2 for a split screen
      idle_after: 60s                   # only with `mode: activity`
      cpu_below: 2%                     # only with `mode: activity`

    background:
      shed_deadline: 5s                 # for onTrimMemory(TRIM_MEMORY_UI_HIDDEN): drop what is only shown
      task_limit: 10m                   # a job of JobScheduler has ten minutes
      suspend_after: 10s                # freeze_debounce_timeout: the freezer comes ten seconds after an app is cached
      safe_point:                       # what is waited for before the freeze, at most
        file_locks: 10s                 # the freezer skips who blocks others with a file lock, and looks again; so
                                        # long here, and then it freezes all the same
        hold: 10m                       # a foreground service, for as long as it says so
        after_launch: 0s
        after_wake: 10s                 # who is unfrozen gets the whole debounce again
      heartbeat: never                  # alarms, jobs and binder calls thaw an app, the clock alone doesn't

    hibernate:                          # stands for compaction, which is what frees a cached app's memory there
      enabled: true
      max_footprint: unlimited          # compaction knows no size that is too large
      min_footprint: 12MB               # compact_full_rss_throttle_kb = 12000: less isn't worth a pass
      after: 30s                        # compaction follows the freezer closely; a disk wants a little more certainty
      only_if_faster_than_relaunch: true  # zram is always faster than a cold start, a disk isn't
      cooldown: 60s                     # compact_throttle: the same app isn't compacted again at once
      demote_after: 24h                 # a day unused: the app standby bucket falls
      order: [recency, footprint]       # the least recently used of the cached first
      disk: { budget: 4GB, min_free: 5%, daily_writes: 10GB }  # zram is about a phone's RAM; flash is to be spared
      compression: { level: 1 }         # zram's lz4 is faster and weaker
      durability: synced                # free memory only when the disk has confirmed the image
      encrypt: false                    # `true`: images are AES-256-GCM, with a key that only the kernel has
      drop_file_pages: false            # `true`: its program leaves RAM, too; a resume reads it from disk again

    watchdog:
      launch: 10s                       # PROC_START_TIMEOUT: a process that hasn't attached by then is killed
      answer: 5s                        # KEY_DISPATCHING_TIMEOUT, by which an app is Not Responding
      max_extension: 20s            # a broadcast in the background has so much
      on_timeout: terminate                # the phone asks its user first; nobody is asked here. `report` only says so

    terminate:
      grace: 0s                         # lmkd sends SIGKILL: who is cached has saved its state when it left
      settle: 500ms                     # wait for the freed memory to show; lmkd waits for the death it caused
      order: [band, recency, footprint]  # oom_adj, of equal ones the least recently used. `[band, footprint]` is
                                        # ro.lmk.kill_heaviest_task

    early_wake:
      within: 10s                       # back within seconds: the user was only looking something up
      bonus: 15                         # "previous app" is kept longer than other cached ones
      halves_every: 1h
      max_idle: never               # the freezer's wait is the same for every app

    # What is done at each level, cheapest loss first, one step at a time, until the level falls.
    ladder:
      warning:  [hibernate, purge, warn]  # compact, drop what is offered, tell everybody
      urgent:   [hibernate, purge, warn, terminate suspended]  # and then cached apps, one at a time
      critical: [purge, warn, terminate suspended, terminate background, terminate foreground]  # to oom_adj 0
    """#
}
