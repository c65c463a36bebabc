/// The keys at the top of `dormouse.yaml` that are no policies, workers or rules.
enum ConfigurationKeys {
  @KeyList<DaemonConfiguration> static var all: [Key<DaemonConfiguration>] {
    Key<DaemonConfiguration>(
      "state_directory", path: \.stateDirectory, expects: "a directory's path",
      about: "the directory of images, logs and reports")
    Key<DaemonConfiguration>(
      "socket", path: \.socket, expects: "a socket's path", check: socketFits,
      about: "the path of the control socket, at most 107 bytes")
    Key<DaemonConfiguration>(
      "journal", \.journal, usual: JournalConfiguration(),
      about: "the history for `events`, `report` and `replay`"
    ) { JournalConfiguration.keys }
    Key<DaemonConfiguration>(
      "on", shape: .mapping(MappingShape(HookKeys.all(isOfWorker: false))),
      about: """
        commands that are run when something happens, with the event as JSON on standard input
        """,
      read: { reader, configuration in
        reader.section("on") { configuration.hooks = HookKeys.read($0, isOfWorker: false) }
      },
      write: { _ in nil })
  }

  /// Checks the length of the path: `sun_path` has 108 bytes, and the last one is a NUL.
  private static func socketFits(_ path: String) -> Problem? {
    path.utf8.count <= 107
      ? nil
      : Problem(
        message: "is \(path.utf8.count) bytes long; a socket's path has at most 107",
        suggestion: "choose a shorter directory, such as one in `/run`")
  }
}
