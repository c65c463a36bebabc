// Written by scripts/embed-policies from Policies/ios-5.yaml.

extension BuiltInPolicies {
  static let ios5 = #"""
    # ios-5: the life cycle of apps under iOS 5.
    #
    # One worker is in front. The others are told to give memory back, then get no processor time
    # (suspended), and small ones leave memory altogether (hibernated). Only when that isn't enough
    # are workers terminated, and those that nobody would miss go first.
    #
    # The behaviour is that of two talks, "Understanding Memory Management on iPhone" (WWDC 2009, 416)
    # and "iOS Performance in Depth" (WWDC 2011, 318); the numbers beside it say where they come from.
    # These are also the defaults of every key that another policy leaves out.
    #
    # Sizes: B, KB, MB, GB, powers of 1024. Durations: ms, s, m, h. All keys: docs/policy-files.md.

    name: ios-5
    mode: enforce                       # `shadow` decides, explains and reports, and does nothing: a rehearsal

    memory:
      budget: host                      # watch this machine. A size, such as 256MB, instead lets the workers play
                                        # a device with that much RAM, whatever the machine has

    # When memory counts as short. Any condition of a level raises it.
    pressure:
      warning:                          # XNU begins to act at 15 % available
        available_below: 15%
        stall: { some: 10%, window: 2s }  # or when some task waited for memory for 10 % of two seconds (PSI).
                                        # 2s is what the kernel lets an ordinary user watch
      urgent:
        available_below: 10%            # XNU's second threshold
      critical:
        available_below: 5%             # XNU's last: from here on somebody has to go
        stall: { full: 10%, window: 2s }  # `full`: nobody could work at all for that long
      sustained_for: 0s                 # act at once; 2s or so forgives short peaks
      swap: 100%                        # of the free swap counts as available at urgent and critical, the levels that
                                        # end workers. `0%` ends them although the machine could still swap
      clear_after: 5s                   # how long it must be over before it counts as over; less makes it flap
      warn_once_per: episode            # a warning is the last chance, and isn't repeated until memory is back to
                                        # normal. `level`: once at each level, as Android's trim levels

    foreground:
      mode: manual                        # a person or program says who is in front (`dormouse foreground NAME`), like a
                                        # finger on an icon. `activity`: traffic and processor time say it
      max: 1                            # a phone shows one app. More, or `unlimited`, for machines that serve many
      idle_after: 60s                   # only with `mode: activity`: quiet for this long means idle
      cpu_below: 2%                     # only with `mode: activity`: of one core; less counts as quiet

    background:
      shed_deadline: 5s                 # to answer "you are in the background now": save, drop caches, and say so.
                                        # About five seconds is what iOS gave
      task_limit: 10m                   # unfinished work (an upload) may put suspension off for so long; iOS 4's limit
      suspend_after: 10s                # grace before suspension; keep it above shed_deadline: nobody can give memory
                                        # back once suspended. `never` suspends nobody
      safe_point:                       # what is waited for before the freeze, at most; `0s` doesn't wait
        file_locks: 10s                 # iOS killed apps that were suspended with a file locked (0xdead10cc); here they
                                        # get time to let go, and are suspended all the same when it is over
        hold: 10m                       # for as long X_DORMOUSE_HOLD=1 keeps a worker awake
        after_launch: 0s                # least up-time since launch, and since a wake, whatever else has passed;
        after_wake: 0s                  # more than suspend_after to have an effect
      heartbeat: never                  # iOS' VoIP apps woke every ten minutes: { every: 10m, for: 10s, hibernated: false }

    hibernate:
      enabled: true                     # `false`: suspended workers stay in RAM
      max_footprint: 16MB               # iOS 5 wrote suspended apps to flash up to this size: small enough to be back
                                        # before anybody notices. `unlimited` on a machine with a fast disk
      min_footprint: 1MB                # less isn't worth the work
      after: 30s                        # suspended for so long, or at once under pressure. `never`: only under pressure
      only_if_faster_than_relaunch: true  # a worker that launches faster than it resumes is better off terminated
      resume: auto                      # what it wants first, or all of it before it runs: whichever has been faster
      cooldown: 45s                     # after a wake, so that nothing goes to and fro (ChromeOS' value)
      demote_after: 24h                 # not woken for a day: it counts as suspended when somebody has to go, and gives
                                        # its place on a full disk to others (XNU thins out its freezer daily). `never`
      order: [footprint]                # under pressure the biggest first. Also: band, recency, regret, relaunch_cost
                                        # (here: the cheapest to resume first)
      disk:
        budget: 2GB                     # for all images together
        min_free: 5%                    # of the file system, that stay free whatever the budget says
        daily_writes: 10GB              # spares flash; XNU allows its freezer 1 GB a day on a phone's
      overlay: true                     # write only what has changed since the last time. The last image stays on
                                        # disk for that while the worker runs; `false` if secrets mustn't
      compression:
        level: 1                        # zstd, -7…19. Above 1 costs more time than it saves space; below 0 resumes
                                        # somewhat faster from somewhat larger images
      drop_file_pages: false            # `true`: its program leaves RAM, too, where nobody else runs it (node: 38 MB).
                                        # Then a resume reads it from disk again
      durability: synced                # memory is freed when the disk has confirmed the image; `cached`: before that
      encrypt: false                    # `true`: images are AES-256-GCM, with a key that the kernel's keyring keeps
                                        # until the machine ends; a disk that is lost tells nothing. Some ms a resume

    # Deadlines for workers that can be expected to answer.
    watchdog:
      launch: 20s                       # from start to readiness: iPhone OS killed what took longer
      answer: 10s                       # from a request to its answer, for workers that have shown that they answer; it
                                        # stands still while they sleep
      max_extension: 60s            # the most that EXTEND_TIMEOUT_USEC (sd_notify) adds to one deadline, in all
      on_timeout: terminate                # `report`: only say so in the journal

    terminate:
      grace: 2s                         # from SIGTERM to SIGKILL: time to save, not to think
      settle: 500ms                     # wait for the freed memory to show before the next victim; killing more than
                                        # needed is the commonest complaint about every out-of-memory daemon
      order: [band, footprint]          # who goes first: the lowest band, then the largest. Also: recency,
                                        # relaunch_cost, regret (chance of use soon × cost of coming back / size)

    early_wake:                         # who is wanted again as soon as it was put away wasn't idle
      within: 10s                       # woken so soon after suspension, or started so soon after termination
      bonus: 10                         # points of band for it, each time; 29 fill the room of a state
      halves_every: 10m                 # and are forgotten by halves
      max_idle: never               # a time: wanted too soon again and again, a worker's idle times double, up to this

    # What is done at each level, cheapest loss first, one step at a time, until the level falls.
    ladder:
      warning:  [hibernate]             # nobody notices
      urgent:   [hibernate, purge, terminate suspended]  # caches on offer, then those that sleep
      # At the critical level those that sleep go *before* anybody is warned: they can't answer, and a
      # warning costs those that run. It is their last chance, given once. What is on offer costs nobody.
      critical: [purge, terminate suspended, warn, terminate background, terminate foreground]
    """#
}
