// How a plugin of ours asks: this stands before what differs from client to client.
import { spawn } from "node:child_process"

const command = ["holdfast"]
const client = ""
const patience = 10_000

// One call of `holdfast hook`: what it prints, or nothing.
function ask(event, data) {
  return new Promise((resolve) => {
    let said = ""
    try {
      const child = spawn(command[0], [...command.slice(1), "hook", client, event], {
        stdio: ["pipe", "pipe", "ignore"],
        timeout: patience,
      })
      child.on("error", () => resolve(""))
      child.on("close", () => resolve(said.trim()))
      child.stdin.on("error", () => {})
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (piece) => (said += piece))
      child.stdin.end(JSON.stringify(data))
    } catch {
      resolve("")
    }
  })
}

