// Holdfast in OpenClaw: tells the model what is remembered, and keeps out of the way when anything fails.
import { spawn } from "node:child_process"

const command = ["holdfast"]
const patience = 10_000

// One call of `holdfast hook`: what it prints, or nothing.
function ask(event, data) {
  return new Promise((resolve) => {
    let said = ""
    try {
      const child = spawn(command[0], [...command.slice(1), "hook", "openclaw", event], {
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

export default {
  id: "holdfast",
  name: "Holdfast",
  register(api) {
    const told = new Map() // by session: what was told at its start, so that the same bytes come with every request
    const whose = (ctx) => ({ session_id: ctx?.sessionId ?? ctx?.sessionKey ?? "", cwd: ctx?.workspaceDir ?? "" })
    const tell = (who, source) => {
      const text = ask("start", { ...who, source })
      told.set(who.session_id, text)
      return text
    }
    api.on("before_prompt_build", async (event, ctx) => {
      const who = whose(ctx)
      const start = await (told.get(who.session_id) ?? tell(who, "startup"))
      const prompt = event?.currentUserMessage ?? event?.prompt ?? ""
      const more = typeof prompt === "string" && prompt ? await ask("prompt", { ...who, prompt }) : ""
      const answer = {}
      if (start) answer.appendSystemContext = start
      if (more) answer.prependContext = more
      return answer
    })
    api.on("before_compaction", async (_event, ctx) => void (await ask("compact", whose(ctx))))
    api.on("after_compaction", async (_event, ctx) => void tell(whose(ctx), "compact"))
    api.on("agent_end", async (_event, ctx) => void (await ask("stop", whose(ctx))))
    api.on("session_end", async (_event, ctx) => {
      const who = whose(ctx)
      told.delete(who.session_id)
      await ask("end", who)
    })
  },
}
