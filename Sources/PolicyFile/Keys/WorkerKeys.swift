import Policy
import YAML

/// Every key of an entry of `workers:`. docs/configuration.md has the same table, and a test
/// compares them.
enum WorkerKeys {
  typealias WorkerKey = Key<WorkerConfiguration>

  static var all: [WorkerKey] { program + groups + health + ending + surroundings }

  @KeyList<WorkerConfiguration> private static var program: [WorkerKey] {
    WorkerKey("command", command: \.command, about: "the program and its arguments")
      .called("list, or a text", usual: "required", isAtLaunch: true)
    WorkerKey(
      "directory", kind: "path", about: "the working directory",
      usual: "the configuration's directory", isAtLaunch: true, shape: .text,
      read: {
        let path = Converter.path("a directory's path", from: $0.directory)
        $0.read("directory", into: &$1.directory, as: path)
      },
      write: { WorkerRenderer.escaped($0.directory) })
    // `WorkerReader` reads `environment` and `env_file` first, because commands are expanded with
    // them.
    WorkerKey(
      "environment", kind: "mapping",
      about: "variables; they replace those of `env_file` and of the daemon", isAtLaunch: true,
      shape: .named(.either([.text, .nothing]), names: "^[^=]+$"), read: { _, _ in },
      write: { worker in
        let variables = worker.environment.sorted { $0.key < $1.key }
        return .mapping(variables.map { ($0.key, WorkerRenderer.escaped($0.value)) })
      })
    WorkerKey(
      "env_file", kind: "path, or a list of paths",
      about:
        "files of variables, read together with the configuration; with `user`, at each launch",
      isAtLaunch: true, shape: ValueShape.text.orList, read: { _, _ in },
      write: { .list($0.environmentFiles.map(WorkerRenderer.escaped)) })
    WorkerKey(
      "user", \.user, as: .account("a user's name or number"),
      about: "the user that it runs as; see [Users](#users)", usual: "the daemon's"
    ).atLaunch
    WorkerKey(
      "group", \.group, as: .account("a group's name or number"),
      about: "the group that it runs as; see [Users](#users)", usual: "the daemon's"
    ).atLaunch
    WorkerKey(
      "umask", \.umask, as: .umask,
      about: "permission bits that its new files don't get; with or without quotes",
      usual: "the daemon's"
    ).atLaunch
    WorkerKey(
      "limits", \.limits, usual: ResourceLimits(),
      about: "memory, processor time and processes that it may use; see [Limits](#limits)"
    ) { LimitKeys.all }.called("mapping", isAtLaunch: true)
  }

  @KeyList<WorkerConfiguration> private static var groups: [WorkerKey] {
    WorkerKey(
      "instances", kind: "list, or a mapping",
      about: """
        the names of several workers that this entry declares; see \
        [Instances and groups](#instances-and-groups)
        """,
      shape: InstanceReader.shape, read: { reader, _ in _ = reader.node("instances") },
      write: { _ in .list([]) })
    WorkerKey(
      "replicas", kind: "whole number, 0 to \(InstanceReader.limit)",
      about:
        "how many workers this entry declares; see [Instances and groups](#instances-and-groups)",
      shape: .whole(0...InstanceReader.limit), read: { reader, _ in _ = reader.node("replicas") },
      write: { _ in .list([]) })
    WorkerKey(
      "groups", kind: "name, or list of names",
      about: """
        groups that it belongs to; verbs take `@NAME` for a group's workers. See \
        [Instances and groups](#instances-and-groups)
        """,
      shape: Converter.name("").shape.orList,
      read: { reader, worker in
        let names = reader.oneOrMore("groups", of: .name("a group's name"))
        worker.groups = reader.unique(names.map { ($0.value, $0.value, $0.node) })
      },
      write: { .list($0.groups.map { .text($0) }) })
    WorkerKey(
      "importance", \.importance, as: .integer(0...100),
      about: "a higher number is terminated later, among workers in the same state")
    WorkerKey(
      "autostart", \.autostart, as: .boolean,
      about: """
        whether the worker is started with the daemon. Of many workers, as many start up at once \
        as keep the processors busy; one that is asked for meanwhile precedes those that wait
        """)
    WorkerKey(
      "depends_on", kind: "names, or a mapping",
      about: "workers that must run before it is started; see [Dependencies](#dependencies)",
      isAtLaunch: true, shape: DependencyReader.shape,
      read: { $1.dependsOn = DependencyReader(reader: $0).read("depends_on") },
      write: { worker in
        .mapping(
          worker.dependsOn.map {
            ($0.worker, .mapping([("condition", .plain($0.condition.rawValue))]))
          })
      })
  }

  @KeyList<WorkerConfiguration> private static var health: [WorkerKey] {
    HealthKeys.shed.called("see below")
    HealthKeys.readiness.called("see below", isAtLaunch: true)
    WorkerKey(
      "notify", \.notify, as: .boolean,
      about: "whether it gets `NOTIFY_SOCKET`; see [sd_notify](#sd_notify)"
    ).atLaunch
    WorkerKey(
      "fdstore", \.fdstore, as: .integer(0...512),
      about: "how many descriptors it may store; see [Stored descriptors](#stored-descriptors)"
    ).atLaunch
    WorkerKey(
      "watchdog", \.watchdog, as: .watchdog,
      about: "it has to send `WATCHDOG=1` this often; see [Watchdog](#watchdog)"
    ).atLaunch
    HealthKeys.liveness.called("a probe")
  }

  @KeyList<WorkerConfiguration> private static var ending: [WorkerKey] {
    WorkerKey(
      "stop_command", kind: "command",
      about: "runs before `stop_signal`; see [Stopping a worker](#stopping-a-worker)",
      shape: ValueShape.text.orList,
      read: { $1.stopCommand = $0.commands.read("stop_command", in: $0) },
      write: { WorkerRenderer.command($0.stopCommand ?? []) })
    WorkerKey(
      "stop_signal", \.stopSignal, as: .stopSignal, about: "the signal that asks it to end")
    WorkerKey(
      "reload_signal", \.reloadSignal, as: .caughtSignal,
      about: """
        the signal that makes it read its own configuration; see \
        [Reloading a worker](#reloading-a-worker)
        """)
    RestartKeys.key.called("word, or a mapping", usual: "`after-shortage`")
  }

  @KeyList<WorkerConfiguration> private static var surroundings: [WorkerKey] {
    WorkerKey(
      "output", \.output, usual: WorkerOutput(),
      about: "where its output is written; see [Output](#output)", check: checkOutput
    ) { output }.called("mapping", usual: "the daemon's logs", isAtLaunch: true)
    WorkerKey(
      "listen", kind: "address, list or mapping",
      about: "sockets that the daemon opens for it; see [Sockets](#sockets)",
      isAtLaunch: true,
      shape: .either([.text, .list(.text), .named(.text, names: NameRule.pattern)]),
      read: { $1.listen = $0.sockets(of: $1.name) },
      write: WorkerRenderer.listen)
    WorkerKey(
      "wake_at", kind: "line of cron, or a list",
      about: "times at which it is woken; see [Schedules](#schedules)",
      shape: ValueShape.text.orList,
      read: { $1.wakeAt = $0.oneOrMore("wake_at", of: .schedule).map(\.value) },
      write: { .list($0.wakeAt.map { .text($0.text) }) })
    WorkerKey(
      "wake_with", \.wakeWith, listOf: .name("the name of a worker"),
      about: "workers that are woken with it; see [Waking together](#waking-together)")
    WorkerKey(
      "health_checks_while_asleep", kind: "port, mapping or list",
      about:
        """
        health checks that the daemon answers; \
        see [Health checks while asleep](#health-checks-while-asleep)
        """,
      shape: Converter.asleepAnswer.shape.orList,
      read: { reader, worker in
        let answers = reader.oneOrMore("health_checks_while_asleep", of: .asleepAnswer)
        _ = reader.unique(answers.map { ($0.value, $0.value.text, $0.node) })
        worker.healthChecksWhileAsleep = answers.map(\.value)
      },
      write: { .list($0.healthChecksWhileAsleep.map(WorkerRenderer.asleepAnswer)) })
    WorkerKey(
      "on", kind: "mapping",
      about: """
        commands that are run when something happens to this worker; see \
        [commands for events](hooks.md)
        """,
      shape: .mapping(MappingShape(HookKeys.all(isOfWorker: true))),
      read: { reader, worker in
        reader.section("on") { worker.hooks = HookKeys.read($0, isOfWorker: true) }
      },
      write: { .mapping(HookKeys.all(isOfWorker: true).pairs(of: $0.hooks)) })
    // `WorkerReader` reads `policy` and `stop_grace`, which are values of the policy.
    WorkerKey(
      "policy", kind: "mapping",
      about: "keys of a policy for this worker alone; see [Overrides](policy-files.md#overrides)",
      shape: .mapping(KeyExplorer.policy(.worker)), read: { _, _ in }, write: { _ in .list([]) })
    WorkerKey(
      "stop_grace", kind: "duration",
      about: "time from `stop_signal` to SIGKILL; another name for `policy.terminate.grace`",
      usual: "the policy's", shape: Converter.duration.shape, read: { _, _ in },
      write: { _ in .list([]) })
  }

  @KeyList<WorkerOutput> private static var output: [Key<WorkerOutput>] {
    Key<WorkerOutput>(
      "file", path: \.file, expects: "a file's path",
      about: "the file to append to. Default: a file in the state directory")
    Key<WorkerOutput>(
      "max_size", \.maxSize, as: .size.notZero, about: "a larger file is rotated. Default: none is")
    Key<WorkerOutput>(
      "keep", \.keep, as: .integer(0...1_000),
      about: "how many rotated files are kept, 0 to 1000. Default: 5")
  }

  private static func checkOutput(_ inner: MappingReader, _ output: inout WorkerOutput) {
    guard output.maxSize == nil, let position = inner.position(ofKey: "keep") else { return }
    inner.sink.error(
      at: position, "`keep` needs `max_size`: without it the log is never rotated",
      suggestion: "write `max_size: 10MB`")
  }
}

extension Key where Root == WorkerConfiguration {
  /// Makes a key with a separate reader.
  ///
  /// - Parameters:
  ///   - kind: the name of the value's kind in the documentation.
  ///   - write: returns an empty list or mapping if there is nothing to write.
  fileprivate init(
    _ name: String, kind: String, about: String, usual: String = "none", isAtLaunch: Bool = false,
    shape: @escaping @autoclosure () -> ValueShape,
    read: @escaping (MappingReader, inout Root) -> Void, write: @escaping (Root) -> YAMLText
  ) {
    self.init(
      name, shape: shape().called(kind), about: about, usual: usual, read: read,
      write: { write($0).nonEmpty })
    self.isAtLaunch = isAtLaunch
  }

  fileprivate var atLaunch: Key {
    var key = self
    key.isAtLaunch = true
    return key
  }
}
