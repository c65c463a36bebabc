/// `/proc/PID/FILE`, for files that are read each second. Interpolating a number would use some 200 KB of the standard
/// library's code, which an idle daemon would keep in memory for that alone.
func procPath(_ pid: Int32, _ file: StaticString) -> String {
  var digits: [UInt8] = []
  var rest = pid.magnitude
  repeat {
    digits.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
    rest /= 10
  } while rest > 0
  var path = Array("/proc/".utf8)
  if pid < 0 { path.append(UInt8(ascii: "-")) }
  path += digits.reversed()
  path.append(UInt8(ascii: "/"))
  file.withUTF8Buffer { path += $0 }
  return String(decoding: path, as: UTF8.self)
}
