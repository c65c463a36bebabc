"""Generated projects for language servers: the file to open, its language, a position, and what completes there."""
import os


def cpp_project(root):
    headers = ["algorithm", "functional", "map", "memory", "regex", "string", "unordered_map",
               "vector"]
    with open(f"{root}/shapes.hpp", "w") as file:
        file.write("#pragma once\n" + "".join(f"#include <{name}>\n" for name in headers))
        for number in range(200):
            file.write(
                f"struct Shape{number} {{\n  std::map<std::string, std::vector<int>> parts;\n"
                f"  std::unordered_map<int, std::string> names;\n"
                f"  int area_{number}() const {{ return (int)parts.size() * {number}; }}\n}};\n")
    lines = ['#include "shapes.hpp"', "int main() {", "  std::vector<Shape7> shapes;",
             "  std::map<std::string, int> counts;", "  shapes.push_back({});",
             "  return shapes.", "}"]
    with open(f"{root}/main.cpp", "w") as file:
        file.write("\n".join(lines) + "\n")
    with open(f"{root}/compile_flags.txt", "w") as file:
        file.write("-std=c++17\n")
    # Not in the file itself: before it knows the types, clangd completes to the words in it.
    return "main.cpp", "cpp", 5, len(lines[5]), "emplace_back"


def python_project(root):
    os.makedirs(f"{root}/package")
    for number in range(20):
        with open(f"{root}/package/part{number}.py", "w") as file:
            file.write("import collections\nimport json\n\n")
            for index in range(30):
                file.write(f"class Part{number}x{index}(collections.OrderedDict):\n"
                           f"    def dump_{index}(self):\n        return json.dumps(self)\n\n")
    with open(f"{root}/package/__init__.py", "w") as file:
        file.write("".join(f"from .part{n} import *\n" for n in range(20)))
    lines = ["import package", "import collections", "part = package.Part3x4()", "part."]
    with open(f"{root}/main.py", "w") as file:
        file.write("\n".join(lines) + "\n")
    return "main.py", "python", 3, 5, "dump_4"


def swift_project(root):
    os.makedirs(f"{root}/Sources/Bench")
    with open(f"{root}/Package.swift", "w") as file:
        file.write("// swift-tools-version: 6.0\nimport PackageDescription\n"
                   'let package = Package(name: "Bench", targets: [.executableTarget(name: "Bench")])\n')
    with open(f"{root}/Sources/Bench/shapes.swift", "w") as file:
        for number in range(100):
            file.write(f"struct Shape{number} {{\n  var parts: [String: [Int]] = [:]\n"
                       f"  func area{number}() -> Int {{ parts.count * {number} }}\n}}\n")
    lines = ["let shape = Shape7()", "let numbers = [1, 2, 3]", "print(numbers.)"]
    with open(f"{root}/Sources/Bench/main.swift", "w") as file:
        file.write("\n".join(lines) + "\n")
    return "Sources/Bench/main.swift", "swift", 2, 14, "count"


def typescript_project(root):
    for number in range(20):
        with open(f"{root}/part{number}.ts", "w") as file:
            for index in range(30):
                file.write(f"export class Part{number}x{index} extends Map<string, number[]> {{\n"
                           f"  dump{index}(): string {{ return JSON.stringify([...this]); }}\n}}\n")
    lines = ['import { Part3x4 } from "./part3";', "const part = new Part3x4();", "part."]
    with open(f"{root}/main.ts", "w") as file:
        file.write("\n".join(lines) + "\n")
    with open(f"{root}/tsconfig.json", "w") as file:
        file.write('{ "compilerOptions": { "target": "es2020" }, "include": ["*.ts"] }\n')
    return "main.ts", "typescript", 2, 5, "dump4"
