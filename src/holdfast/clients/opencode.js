// Holdfast in OpenCode: tells the model what is remembered, and keeps out of the way when anything fails.
import { spawn } from "node:child_process"

const command = ["holdfast"]
const patience = 10_000

// One call of `holdfast hook`: what it prints, or nothing.
function ask(event, data) {
  return new Promise((resolve) => {
    let said = ""
    try {
      const child = spawn(command[0], [...command.slice(1), "hook", "opencode", event], {
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

function textOf(parts) {
  return (parts ?? []).filter((part) => part?.type === "text" && !part.synthetic).map((part) => part.text).join("\n")
}

export const Holdfast = async ({ directory, worktree }) => {
  const folder = directory || worktree
  const told = new Map() // by session: what was told at its start, so that the same bytes come with every request
  const tell = (session, source) => {
    const before = told.get(session) ?? Promise.resolve("")
    const now = Promise.all([before, ask("start", { session_id: session, cwd: folder, source })])
    told.set(session, now.then(([old, text]) => text || old))
  }
  return {
    event: async ({ event }) => {
      const session = event?.properties?.sessionID ?? event?.properties?.info?.id
      if (event?.type === "session.idle" && session) await ask("stop", { session_id: session, cwd: folder })
      if (event?.type === "session.compacted" && session) tell(session, "compact")
      if (event?.type === "session.deleted" && session) told.delete(session)
    },
    "chat.message": async (input, output) => {
      const session = input.sessionID
      if (!told.has(session)) tell(session, "startup")
      await told.get(session)
      const parts = output.parts ?? []
      const prompt = textOf(parts)
      const text = prompt && (await ask("prompt", { session_id: session, cwd: folder, prompt }))
      const first = parts.find((part) => part?.type === "text")
      if (text && first) first.text = `${first.text}\n\n${text}`
    },
    "experimental.chat.system.transform": async (input, output) => {
      const text = input?.sessionID && (await told.get(input.sessionID))
      if (text) output.system.push(text)
    },
    "experimental.session.compacting": async (input) => {
      await ask("compact", { session_id: input?.sessionID, cwd: folder })
    },
  }
}
