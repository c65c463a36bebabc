import ArgumentParser
import AsyncHTTPClient
import Containers
import Control
import Glibc
import KubernetesAPI
import PodReports

@main
struct ContainersProgram: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "dormouse-containers",
    abstract: "Lets Dormouse put idle containers to sleep, as their labels or annotations say.",
    discussion: """
      A container with the label `dormouse.policy=server` is adopted when it starts, and forgotten \
      when it ends. `dormouse.KEY=VALUE` replaces a value of that policy, such as \
      `dormouse.hibernate.after=5m`. Also: dormouse.enable, dormouse.name, dormouse.importance, \
      dormouse.may_terminate, dormouse.mode, dormouse.health_checks_while_asleep, \
      dormouse.image_labels. Labels of the image have no effect without the last one.

      On a node of Kubernetes, --containerd or --crio watches pods: they have annotations such as \
      `dormouse.io/policy: server` instead of labels. --kubernetes reports to the API what happens \
      to them.

      Without a runtime's option Docker and Podman are watched at their usual sockets.

      Examples:
        docker run -d --label dormouse.policy=server redis
        dormouse-containers --once --dry-run
        dormouse-containers list
      """,
    version: Dormouse.version, subcommands: [WatchCommand.self, ListCommand.self],
    defaultSubcommand: WatchCommand.self)
}

struct RuntimeOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Docker's socket.", valueName: "path"), completion: .file())
  var docker: String?
  @Option(
    help: ArgumentHelp("Podman's socket.", valueName: "path"), completion: .file())
  var podman: String?
  @Option(
    help: ArgumentHelp("containerd's socket: the pods of Kubernetes.", valueName: "path"),
    completion: .file())
  var containerd: String?
  @Option(
    help: ArgumentHelp("CRI-O's socket: the pods of Kubernetes.", valueName: "path"),
    completion: .file())
  var crio: String?
  @Option(
    help: ArgumentHelp("The daemon's control socket.", valueName: "path"), completion: .file())
  var socket: String?

  var settings: WatchSettings {
    let options: [(String, String?, Runtime.Interface)] = [
      ("docker", docker, .engine), ("podman", podman, .engine), ("containerd", containerd, .cri),
      ("cri-o", crio, .cri),
    ]
    let named = options.compactMap { name, path, interface in
      path.map { Runtime(name: name, socket: Self.path($0), interface: interface) }
    }
    let paths = DefaultPaths.ofThisProcess()
    var settings = WatchSettings(
      runtimes: named.isEmpty ? Self.usual : named, socket: paths.socket(option: socket))
    settings.isNamed = socket != nil
    return settings
  }

  /// Returns the path of a `DOCKER_HOST`, which is a URL.
  private static func path(_ text: String) -> String {
    text.hasPrefix("unix://") ? String(text.dropFirst("unix://".count)) : text
  }

  private static var usual: [Runtime] {
    var docker = "/run/docker.sock"
    if let host = getenv("DOCKER_HOST").map({ String(cString: $0) }), host.hasPrefix("unix://") {
      docker = path(host)
    }
    var podman = "/run/podman/podman.sock"
    if geteuid() != 0, let directory = getenv("XDG_RUNTIME_DIR").map({ String(cString: $0) }) {
      podman = "\(directory)/podman/podman.sock"
    }
    return [Runtime(name: "docker", socket: docker), Runtime(name: "podman", socket: podman)]
  }
}

struct WatchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch", abstract: "Adopt containers when they start (the default).")
  @OptionGroup var runtimes: RuntimeOptions
  @OptionGroup var kubernetes: KubernetesOptions
  @Flag(help: "Only log what would be done.") var dryRun = false
  @Flag(help: "Look once instead of watching; exit code 1 if something wasn't done.")
  var once = false

  func validate() throws {
    guard kubernetes.isUsed else { return }
    if dryRun || once {
      throw ValidationError("the Kubernetes API isn't used with --dry-run or --once.")
    }
    if runtimes.containerd == nil, runtimes.crio == nil {
      throw ValidationError("the Kubernetes API needs --containerd or --crio: pods.")
    }
  }

  func run() async throws {
    var settings = runtimes.settings
    settings.isDryRun = dryRun
    let access = try kubernetes.access()
    let isDone = try await HTTP.use { [settings] http in
      guard let access else { return await watch(settings, http, reporter: nil) }
      return try await HTTP.use(KubernetesHTTP.client(for: access)) { api in
        let reporter = PodReporter(access, http: api, settings: kubernetes.settings) {
          Streams.complain($0)
        }
        let isDone = await watch(settings, http, reporter: reporter)
        await reporter.finish()
        return isDone
      }
    }
    if !isDone { throw ExitCode(CommandExit.notDone.rawValue) }
  }

  private func watch(
    _ settings: WatchSettings, _ http: HTTPClient, reporter: PodReporter?
  ) async -> Bool {
    let watch = ContainerWatch(settings, http: http, reporter: reporter) { Streams.complain($0) }
    if once { return await watch.poll() }
    await Signals.untilEnd { await watch.run() }
    return true
  }
}

struct ListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract:
      "List containers with labels or annotations of Dormouse beside their state in Dormouse.")
  @OptionGroup var runtimes: RuntimeOptions
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let settings = runtimes.settings
    let list = try await HTTP.use { await ContainerList.make(settings, http: $0) }
    for trouble in list.troubles { Streams.complain(trouble) }
    for container in list.containers {
      for problem in container.problems {
        Streams.complain("\(escaped(container.name)): \(escaped(problem))")
      }
    }
    if json {
      Streams.write(try WireCodec.json(for: list.containers) + [UInt8(ascii: "\n")], STDOUT_FILENO)
    } else {
      Streams.write(Array(list.text.utf8), STDOUT_FILENO)
    }
    if list.troubles.count > settings.runtimes.count {
      throw ExitCode(CommandExit.notDone.rawValue)
    }
  }
}
