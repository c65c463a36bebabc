import Control
import Linux

/// Where the API is, and by what this program is known there.
public struct KubernetesAccess: Hashable, Sendable {
  /// Without a slash at its end.
  public var url: String
  /// Read at each request: the kubelet replaces it.
  public var tokenFile: String?
  /// Certificates of authorities, PEM; nil: the system's.
  public var authorityFile: String?
  /// Of this client, PEM; both or none.
  public var certificateFile: String?
  public var keyFile: String?

  public init(
    url: String, tokenFile: String? = nil, authorityFile: String? = nil,
    certificateFile: String? = nil, keyFile: String? = nil
  ) {
    self.url = url
    self.tokenFile = tokenFile
    self.authorityFile = authorityFile
    self.certificateFile = certificateFile
    self.keyFile = keyFile
  }

  public static let accountDirectory = "/var/run/secrets/kubernetes.io/serviceaccount"

  /// Of a pod with a service account. nil: the environment isn't that of a pod.
  public static func ofPod(
    _ environment: (String) -> String?, directory: String = accountDirectory
  ) -> KubernetesAccess? {
    guard let host = environment("KUBERNETES_SERVICE_HOST"), !host.isEmpty,
      let port = environment("KUBERNETES_SERVICE_PORT"), UInt16(port) != nil
    else { return nil }
    // An address of IPv6.
    let name = host.contains(":") ? "[\(host)]" : host
    return KubernetesAccess(
      url: "https://\(name):\(port)", tokenFile: "\(directory)/token",
      authorityFile: "\(directory)/ca.crt")
  }

  func token() throws(KubernetesError) -> String? {
    guard let tokenFile else { return nil }
    let text: String
    do throws(SystemCallError) {
      text = String(decoding: try readFile(tokenFile), as: UTF8.self)
    } catch { throw .token("\(error)") }
    let token = text.split(whereSeparator: \.isWhitespace).first.map(String.init) ?? ""
    // What a header can hold.
    guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw .token("\(escaped(tokenFile)) has none")
    }
    return token
  }
}
