// Written by scripts/embed-policies from Policies/ios-5.yaml.

extension BuiltInPolicies {
  static let ios5 = #"""
    # ios-5: the life cycle of apps under iOS 5.
    #
    # One worker is in the foreground. The others are asked to free memory, are then suspended (no processor
    # time), and small ones are hibernated (their memory moves to disk). Workers are terminated only when that
    # isn't enough: first those that are missed the least.
    #
    # The behaviour is that of two talks, "Understanding Memory Management on iPhone" (WWDC 2009, 416)
    # and "iOS Performance in Depth" (WWDC 2011, 318); comments say where the numbers come from.
    # These values are also the defaults of every key that another policy leaves out.
    #
    # Sizes: B, KB, MB, GB, powers of 1024. Durations: ms, s, m, h. All keys: docs/policy-files.md.

    name: ios-5
    mode: enforce                       # `shadow`: decisions are logged, not applied; to try a policy

    memory:
      budget: host                      # measure this machine. A size, such as 256MB: the workers share an imaginary
                                        # device with that much RAM, whatever the machine has

    # When memory counts as short. Any condition of a level raises it.
    pressure:
      warning:                          # XNU begins to act at 15 % available
        available_below: 15%
        stall: { some: 10%, window: 2s }  # some task waited for memory for 10 % of two seconds (PSI).
                                        # The kernel permits an ordinary user multiples of 2s
      urgent:
        available_below: 10%            # XNU's second threshold
      critical:
        available_below: 5%             # XNU's last: from here on workers are terminated
        stall: { full: 10%, window: 2s }  # `full`: all tasks waited for that long
      sustained_for: 0s                 # act at once; 2s or so ignores short peaks
      stalls_count_below: 20%           # with this much available, stalls alone raise the level to warning at most: they
                                        # may be those of a program that thrashes under its own limit
      terminate_after: 1s               # a level that terminates must hold this long before a worker is terminated
      swap: 100%                        # share of the free swap that counts as available at urgent and critical, the
                                        # levels that terminate workers. `0%`: terminate although there is free swap
      clear_after: 5s                   # how long a condition must be over; a shorter time makes the level flap
      warn_once_per: episode            # a warning isn't repeated until memory is back to normal.
                                        # `level`: once at each level, as Android's trim levels

    foreground:
      mode: manual                      # you or a program choose the foreground (`dormouse foreground NAME`), as a finger
                                        # chooses an icon. `activity`: traffic and processor time decide
      max: 1                            # a phone shows one app. More, or `unlimited`, for machines that serve many
      idle_after: 60s                   # only with `mode: activity`: quiet for this long means idle
      cpu_below: 2%                     # only with `mode: activity`: less of one core counts as quiet

    background:
      shed_deadline: 5s                 # to answer "you are in the background now": save, empty caches, reply.
                                        # iOS gave about five seconds
      task_limit: 10m                   # unfinished work (an upload) delays suspension by this at most; iOS 4's limit
      suspend_after: 10s                # time in the background before suspension. Keep it above shed_deadline: a
                                        # suspended worker can't free memory. `never`: no worker is suspended
      safe_point:                       # the longest waits before a suspension; `0s` doesn't wait
        file_locks: 10s                 # iOS killed apps that were suspended with a file locked (0xdead10cc). Here they
                                        # get time to release it, and are then suspended with the lock
        hold: 10m                       # how long X_DORMOUSE_HOLD=1 keeps a worker awake
        after_launch: 0s                # least time since launch, and since a wake; has an effect only if it is
        after_wake: 0s                  # longer than suspend_after
      heartbeat: never                  # iOS' VoIP apps woke every ten minutes: { every: 10m, for: 10s, hibernated: false }

    hibernate:
      enabled: true                     # `false`: suspended workers stay in RAM
      max_footprint: 16MB               # iOS 5 wrote suspended apps of up to this size to flash: small enough that their
                                        # resume isn't noticed. `unlimited` on a machine with a fast disk
      min_footprint: 1MB                # a smaller worker frees too little
      after: 30s                        # time suspended; under pressure at once. `never`: only under pressure
      only_if_faster_than_relaunch: true  # a worker that launches faster than it resumes stays suspended
      resume: auto                      # its working set first, unless all memory at once was faster before
      cooldown: 45s                     # after a wake, to prevent flapping (ChromeOS' value)
      demote_after: 24h                 # without a wake for a day it counts as suspended in the order of termination, and
                                        # its image makes room for others (XNU reduces its freezer daily). `never`
      order: [footprint]                # under pressure the largest first. Also: band, recency, regret, relaunch_cost
                                        # (here: the cheapest to resume first)
      disk:
        budget: 2GB                     # for all images together
        min_free: 5%                    # of the file system, that stays free whatever the budget is
        daily_writes: 10GB              # spares flash; XNU allows its freezer 1 GB a day on a phone
      overlay: true                     # write only what has changed since the last image, which stays on disk for that
                                        # while the worker runs; `false` if secrets mustn't stay there
      compression:
        level: 1                        # zstd, -7…19. Above 1 costs more time than it saves space; below 0 resumes
                                        # somewhat faster from somewhat larger images
      drop_file_pages: false            # `true`: the program's pages leave RAM too, if no other process uses them (node:
                                        # 38 MB). A resume then reads them from disk
      durability: synced                # memory is freed when the disk has confirmed the image; `cached`: before that
      encrypt: false                    # `true`: images are AES-256-GCM; the kernel's keyring keeps the key until the
                                        # machine is switched off, so that a stolen disk is unreadable. Some ms a resume

    # Deadlines for workers that can be expected to answer.
    watchdog:
      launch: 20s                       # from start to readiness: iPhone OS killed what took longer
      answer: 10s                       # from a request to its answer, for workers that have answered before; it stops
                                        # while they sleep
      max_extension: 60s                # the most that EXTEND_TIMEOUT_USEC (sd_notify) adds to one deadline, in all
      on_timeout: terminate             # `report`: only write it to the journal

    terminate:
      grace: 2s                         # from SIGTERM to SIGKILL
      settle: 500ms                     # wait for freed memory to show before the next termination: killing more than
                                        # needed is the most common complaint about out-of-memory daemons
      order: [band, footprint]          # first the lowest band, then the largest. Also: recency, relaunch_cost, regret
                                        # (chance of use soon × cost of coming back / size)

    early_wake:                         # a worker that is needed soon after it was put to sleep wasn't idle
      within: 10s                       # woken this soon after suspension, or started this soon after termination
      bonus: 10                         # points of band that it gains each time; 29 fill the room of a state
      halves_every: 10m                 # the bonus halves in this time
      max_idle: never                   # a time: after repeated early wakes the worker's idle times double, up to this

    # What is done at each level, the smallest loss first, one step at a time, until the level falls.
    # A level does first what the levels below it do without ending a worker.
    ladder:
      warning:  [hibernate]             # no client notices
      urgent:   [hibernate, purge, terminate suspended]  # offered caches, then sleeping workers
      # At the critical level sleeping workers are terminated *before* others are warned: they can't answer, and
      # a warning costs running workers their caches. It is given once. Offered memory costs no worker anything.
      critical: [purge, terminate suspended, warn, terminate background, terminate foreground]
    """#
}
