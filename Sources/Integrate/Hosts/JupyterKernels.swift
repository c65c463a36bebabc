/// The commands of Jupyter's kernels.
enum JupyterKernels {
  /// Returns the command of a `kernel.json`. The kernel's name is that of its directory.
  static func find(_ name: String, in root: ConfigValue) -> [CommandLocation] {
    guard let arguments = root["argv"] else { return [] }
    var location = CommandLocation(name: name, shape: .list(["argv"]))
    let provisioner = root[["metadata", "kernel_provisioner", "provisioner_name"]]?.text
    if let provisioner, provisioner != "local-provisioner" {
      location.refusal = .otherProvisioner(provisioner)
    } else if let program = arguments.list?.first?.text, isPython(program) {
      location.refusal = .jupytersPython(program)
    }
    return [location]
  }

  /// Returns whether Jupyter replaces the name by the path of its own Python. It does so if the
  /// name is the first argument.
  private static func isPython(_ program: String) -> Bool {
    program.hasPrefix("python")
      && program.dropFirst("python".count).allSatisfy { $0.isNumber || $0 == "." }
  }
}
