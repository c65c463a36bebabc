import Control
import Linux

/// The address of the API, and this program's credentials there.
public struct KubernetesAccess: Hashable, Sendable {
  /// The address, without a slash at its end.
  public var url: String
  /// The file with the token. It is read at each request: the kubelet replaces it.
  public var tokenFile: String?
  /// The file with certificates of authorities, in PEM; nil for the system's.
  public var authorityFile: String?
  /// This client's certificate, in PEM. It is set only together with the key.
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

  /// The access of a pod with a service account; nil if the environment isn't that of a pod.
  public static func ofPod(
    _ environment: (String) -> String?, directory: String = accountDirectory
  ) -> KubernetesAccess? {
    guard let host = environment("KUBERNETES_SERVICE_HOST"), !host.isEmpty,
      let port = environment("KUBERNETES_SERVICE_PORT"), UInt16(port) != nil
    else { return nil }
    // An IPv6 address needs brackets.
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
    // A token must be valid in a header.
    guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw .token("\(escaped(tokenFile)) has none")
    }
    return token
  }
}
