import ArgumentParser
import AsyncHTTPClient
import Containers
import Glibc
import KubernetesAPI
import PodReports

/// The options for the Kubernetes API. Without them it isn't used.
struct KubernetesOptions: ParsableArguments {
  @Flag(
    help: """
      Report to the Kubernetes API what happens to pods: events, and the condition \
      dormouse.io/Hibernated. By the service account of this program's own pod.
      """)
  var kubernetes = false
  @Option(
    help: ArgumentHelp("The same, with the API at this URL.", valueName: "url"))
  var kubernetesApi: String?
  @Option(
    help: ArgumentHelp("A file with the token for it, read at each request.", valueName: "path"),
    completion: .file())
  var kubernetesToken: String?
  @Option(
    help: ArgumentHelp("The certificates of its authority, in PEM.", valueName: "path"),
    completion: .file())
  var kubernetesCa: String?
  @Option(
    help: ArgumentHelp("A certificate of this client, in PEM.", valueName: "path"),
    completion: .file())
  var kubernetesCertificate: String?
  @Option(
    help: ArgumentHelp("The key of that certificate, in PEM.", valueName: "path"),
    completion: .file())
  var kubernetesKey: String?
  @Option(
    help: ArgumentHelp(
      "The node's name, for events (default: $NODE_NAME, or the host's name).",
      valueName: "name"))
  var nodeName: String?
  @Flag(
    help: """
      Lower the memory requests of pods while they sleep, and restore them when they wake. \
      Needs Kubernetes 1.33.
      """)
  var resizeRequests = false

  var isUsed: Bool { kubernetes || kubernetesApi != nil }

  func validate() throws {
    if kubernetes, kubernetesApi != nil {
      throw ValidationError("--kubernetes and --kubernetes-api exclude each other.")
    }
    if !isUsed {
      let names = [
        ("--kubernetes-token", kubernetesToken), ("--kubernetes-ca", kubernetesCa),
        ("--kubernetes-certificate", kubernetesCertificate),
        ("--kubernetes-key", kubernetesKey), ("--node-name", nodeName),
        ("--resize-requests", resizeRequests ? "" : nil),
      ]
      if let name = names.first(where: { $0.1 != nil })?.0 {
        throw ValidationError("\(name) needs --kubernetes or --kubernetes-api.")
      }
    }
    if (kubernetesCertificate == nil) != (kubernetesKey == nil) {
      throw ValidationError("--kubernetes-certificate and --kubernetes-key need each other.")
    }
    if let url = kubernetesApi, !url.hasPrefix("https://"), !url.hasPrefix("http://") {
      throw ValidationError("--kubernetes-api needs a URL that begins with https:// or http://.")
    }
  }

  /// Returns the access; nil if the API isn't used.
  func access() throws -> KubernetesAccess? {
    guard isUsed else { return nil }
    if var url = kubernetesApi {
      while url.hasSuffix("/") { url.removeLast() }
      return KubernetesAccess(
        url: url, tokenFile: kubernetesToken, authorityFile: kubernetesCa,
        certificateFile: kubernetesCertificate, keyFile: kubernetesKey)
    }
    guard var access = KubernetesAccess.ofPod({ Self.environment($0) }) else {
      throw ValidationError(
        "--kubernetes works in a pod: KUBERNETES_SERVICE_HOST isn't set; use --kubernetes-api URL.")
    }
    access.tokenFile = kubernetesToken ?? access.tokenFile
    access.authorityFile = kubernetesCa ?? access.authorityFile
    access.certificateFile = kubernetesCertificate
    access.keyFile = kubernetesKey
    return access
  }

  var settings: PodReporter.Settings {
    let node = nodeName ?? Self.environment("NODE_NAME") ?? Self.hostName
    return PodReporter.Settings(node: node, resizes: resizeRequests)
  }

  private static func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }

  private static var hostName: String {
    var buffer = [CChar](repeating: 0, count: 256)
    guard gethostname(&buffer, buffer.count - 1) == 0 else { return "unknown" }
    return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
