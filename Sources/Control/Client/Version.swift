/// The program's version.
public enum Dormouse {
  /// The semantic version of daemon, client and wire protocol. They are one file.
  public static let version = "0.1.0"
}
