import Policy

/// Every key of a policy. docs/policy-files.md has the same tables, and a test compares them.
enum PolicyKeys {
  typealias PolicyKey = Key<LifecyclePolicy>

  @KeyList<LifecyclePolicy> static var all: [PolicyKey] {
    // `PolicyReader` reads this key first, because its policy is the base of all other values.
    PolicyKey(
      "extends", shape: ValueShape.text.called("name or path"),
      about: """
        the policy whose values apply where this file has none ([below](#extend-another-policy))
        """,
      holder: .file(
        refusal: "belongs at the top of a policy file",
        suggestion: "write such a file, and name it in `policy`"),
      usual: "none", read: { _, _ in }, write: { _ in nil })
    PolicyKey(
      "name", \.name, as: .name("a name such as `my-policy`"),
      about: "the policy's name in reports",
      holder: .file(refusal: "can't be overridden: it is the policy's own"),
      usual: "the file's name without `.yaml`")
    PolicyKey(
      "mode", \.mode, as: .choice,
      about: "`shadow`: decisions are logged, not applied", holder: .machine,
      meanings: [
        "shadow": "decisions are logged, not applied",
        "enforce": "decisions are applied again",
      ])
    PolicyKey("memory", about: "the memory that workers share", holder: .machine) {
      PolicyKey(
        "budget", \.memory, as: .budget,
        about: """
          `host` measures the machine. A size is the memory of an imaginary device that only the \
          workers use: available is the size less their footprints
          """,
        meanings: [
          "host": "the machine's memory counts, instead of the workers' share alone"
        ])
    }
    pressure
    foreground
    background
    trim
    hibernate
    watchdog
    terminate
    earlyWake
    ladder
  }

  private static var foreground: PolicyKey {
    PolicyKey("foreground", about: "which workers are in the foreground") {
      PolicyKey(
        "mode", \.foreground.mode, as: .choice,
        about: """
          what decides which worker is in the foreground: a request (`dormouse foreground`), or \
          the worker's own activity
          """, holder: .machine,
        meanings: [
          "manual": "requests decide which worker is in the foreground, not activity",
          "activity": "activity decides which worker is in the foreground",
        ])
      PolicyKey(
        "max", \.foreground.max, as: Converter.integer(1 ... .max).or("unlimited"),
        about: """
          how many are in the foreground; one more displaces the one that has been there longest
          """, holder: .machine, less: "fewer workers are in the foreground at once",
        more: "more workers are in the foreground at once",
        meanings: ["unlimited": "any number of workers is in the foreground at once"])
      PolicyKey(
        "idle_after", \.foreground.idleAfter, as: .duration.notZero,
        about: "`mode: activity`: quiet for this long means idle",
        less: "idle workers leave the foreground sooner",
        more: "idle workers stay in the foreground longer")
      PolicyKey(
        "cpu_below", \.foreground.cpuBelow, as: .percent,
        about: "`mode: activity`: less processor time of one core counts as quiet",
        less: "a worker must be quieter to count as idle",
        more: "a worker that still works a little is idle")
    }
  }

  private static var background: PolicyKey {
    PolicyKey("background", about: "what happens to workers in the background") {
      PolicyKey(
        "shed_deadline", \.background.shedDeadline, as: .duration.notZero,
        about: """
          time to answer a request to free memory. Longer than `suspend_after` gives a warning: \
          the worker may be suspended before it has answered
          """,
        less: "workers have less time to free memory",
        more: "workers have more time to free memory")
      PolicyKey(
        "task_limit", \.background.taskLimit, as: .duration,
        about: """
          the longest time that a background task keeps a worker awake. A worker that speaks the \
          [worker protocol](worker-protocol.md) gets a message when it is over
          """,
        less: "background tasks delay suspension for less time",
        more: "background tasks delay suspension for longer")
      PolicyKey(
        "suspend_after", \.background.suspendAfter, as: Converter.duration.or("never"),
        about: "time in the background before suspension; `never` suspends no worker",
        less: "workers are suspended sooner in the background",
        more: "workers run on for longer in the background",
        meanings: ["never": "no worker is suspended for being in the background"])
      PolicyKey(
        "wake_for_timers", \.background.wakeForTimers, as: Converter.duration.notZero.or("never"),
        about: """
          a sleeping worker is woken for its own timers and time-outs that are at least this long \
          ([waking](waking.md))
          """)
      PolicyKey("safe_point", about: "the longest waits before a suspension; `0s`: no wait") {
        PolicyKey(
          "file_locks", \.background.safePoint.fileLocks, as: .duration,
          about: """
            how long a suspension waits for file locks of the worker, also one that you request. \
            Then the worker is suspended with the lock. `0s` doesn't look. A lock that was held \
            all that time is waited for once only
            """)
        PolicyKey(
          "hold", \.background.safePoint.hold, as: .duration,
          about: "how long `X_DORMOUSE_HOLD=1` keeps a worker awake, from entering the background")
        PolicyKey(
          "after_launch", \.background.safePoint.afterLaunch, as: .duration,
          about: "the policy doesn't suspend a worker for this long after its launch")
        PolicyKey(
          "after_wake", \.background.safePoint.afterWake, as: .duration,
          about: "the same after a wake")
      }
      PolicyKey(
        "heartbeat", \.background.heartbeat, or: "never",
        over: HeartbeatRules(every: .zero, lasting: .zero), keys: heartbeat,
        about: """
          a sleeping worker runs for a moment at intervals; not while memory is short. It doesn't \
          count as use
          """
      ) { inner, _ in
        for key in ["every", "for"] where inner.position(ofKey: key) == nil {
          inner.sink.error(
            at: inner.start ?? inner.positions[inner.path], "`heartbeat` needs `\(key)`",
            suggestion: "write `heartbeat: { every: 15m, for: 5s }`, or `heartbeat: never`")
        }
      }
    }
  }

  @KeyList<HeartbeatRules> private static var heartbeat: [Key<HeartbeatRules>] {
    Key<HeartbeatRules>(
      "every", \.every, as: .duration.notZero, about: "time asleep before the worker runs",
      usual: "required")
    Key<HeartbeatRules>(
      "for", \.lasting, as: .duration.notZero, about: "how long it runs", usual: "required")
    Key<HeartbeatRules>(
      "hibernated", \.whileHibernated, as: .boolean,
      about: "whether hibernated workers are resumed for it", usual: "`false`")
  }

  private static var watchdog: PolicyKey {
    PolicyKey("watchdog", about: "deadlines, and what happens after a missed one") {
      PolicyKey(
        "launch", \.watchdog.launch, as: .duration.notZero,
        about: "from the start of its process to readiness, for workers that announce readiness",
        less: "slow launches fail sooner", more: "workers have longer to get ready")
      PolicyKey(
        "answer", \.watchdog.answer, as: .duration.notZero,
        about: """
          from a request to free memory to its answer, for workers that have answered one before \
          (`X_DORMOUSE_DONE=1`). It stops while the worker sleeps, and starts again in full after \
          that
          """,
        less: "workers must answer sooner", more: "workers have longer to answer")
      PolicyKey(
        "max_extension", \.watchdog.maxExtension, as: .duration,
        about: """
          the most that `EXTEND_TIMEOUT_USEC=` adds to one deadline (launch, answer, end) in all. \
          A worker that ends for lack of memory gets no more time
          """)
      PolicyKey(
        "on_timeout", \.watchdog.onTimeout, as: .choice,
        about: "what happens after a missed deadline",
        meanings: [
          "terminate": "a worker that misses a deadline is ended",
          "report": "a missed deadline is only reported",
        ])
    }
  }

  private static var terminate: PolicyKey {
    PolicyKey(
      "terminate", about: "how workers are terminated, and in which order",
      shorthands: [
        .init(word: "never", key: "for_memory") { $0.terminate.forMemory = false },
        .init(word: "ask", key: "ask") { $0.terminate.ask = TerminationRules.usualAsk },
      ]
    ) {
      PolicyKey(
        "grace", \.terminate.grace, as: .duration,
        about: "from the stop signal to SIGKILL",
        less: "workers have less time to end before they are killed",
        more: "workers have more time to end before they are killed")
      PolicyKey(
        "settle", \.terminate.settle, as: .duration,
        about: "wait for freed memory to show before the next termination or rung",
        holder: .machine, less: "the next worker is terminated sooner; possibly more than needed",
        more: "freed memory has longer to show before the next termination")
      PolicyKey(
        "order", \.terminate.order, listOf: .choice,
        about: "which of two workers is terminated first; the first criterion that differs decides",
        holder: .machine)
      PolicyKey(
        "for_memory", \.terminate.forMemory, as: .boolean,
        about: """
          `false`: a worker with this policy isn't terminated for lack of memory, whatever the \
          pressure. `terminate: never` is short for `terminate: { for_memory: false }`
          """,
        meanings: [
          "false": "no worker is terminated for lack of memory",
          "true": "workers may be terminated for lack of memory",
        ])
      PolicyKey(
        "ask", \.terminate.ask, as: Converter.duration.notZero.or("never"),
        about: """
          a notice is given this long before the worker is terminated for lack of memory, and \
          `dormouse protect NAME` keeps it. `terminate: ask` is short for `terminate: { ask: 5s \
          }`
          """,
        less: "there is less time to veto a termination",
        more: "there is more time to veto a termination",
        meanings: ["never": "workers are terminated for lack of memory without a notice"])
    }
  }

  private static var earlyWake: PolicyKey {
    PolicyKey(
      "early_wake",
      about: "what follows when a worker is needed soon after it was put to sleep or terminated"
    ) {
      PolicyKey(
        "within", \.earlyWake.within, as: .duration,
        about: """
          a wake this soon after a suspension for idleness, or a start this soon after a \
          termination for memory, is early
          """)
      PolicyKey(
        "bonus", \.earlyWake.bonus, as: .integer(0...29),
        about: "points of band that the worker gains each time, within the room of its state")
      PolicyKey(
        "halves_every", \.earlyWake.halvesEvery, as: .duration.notZero,
        about: """
          after each such time, half of the bonus is removed, and half of the longer idle time
          """)
      PolicyKey(
        "max_idle", \.earlyWake.maxIdle, as: Converter.duration.notZero.or("never"),
        about: """
          a worker with two or more early wakes in its last six sleeps gets a longer idle time: \
          `background.suspend_after` doubles with each further one, up to this. `hibernate.after` \
          likewise, if its image was needed early, also for its own timers. A sleep that lasts \
          takes one step back. It is kept over restarts of the daemon; `dormouse explain` shows \
          it
          """)
    }
  }
}

extension Converter where Value == LifecyclePolicy.MemoryBudget {
  fileprivate static var budget: Converter {
    Converter<ByteCount>.size.notZero
      .map({ .device($0) }, back: { if case .device(let size) = $0 { size } else { .zero } })
      .orWord("host", .host)
  }
}
