// Holdfast in OpenClaw: shows the model its memory. A failure never disturbs the session.
export default {
  id: "holdfast",
  name: "Holdfast",
  register(api) {
    const told = new Map() // by session: the text shown at its start, so that every request contains the same bytes
    const whose = (ctx) => ({ session_id: ctx?.sessionId ?? ctx?.sessionKey ?? "", cwd: ctx?.workspaceDir ?? "" })
    const key = (who) => (who.session_id ? JSON.stringify([who.session_id, who.cwd]) : "") // an unknown session is not stored
    const drop = (who) => [...told.keys()].filter((one) => JSON.parse(one)[0] === who.session_id).forEach((one) => told.delete(one))
    const tell = (who, source) => {
      const text = ask("start", { ...who, source })
      if (key(who)) told.set(key(who), text)
      return text
    }
    api.on("before_prompt_build", async (event, ctx) => {
      const who = whose(ctx)
      const start = await (told.get(key(who)) ?? tell(who, "startup"))
      const prompt = event?.currentUserMessage ?? event?.prompt ?? ""
      const more = typeof prompt === "string" && prompt ? await ask("prompt", { ...who, prompt }) : ""
      const answer = {}
      if (start) answer.appendSystemContext = start
      if (more) answer.prependContext = more
      return answer
    })
    api.on("before_compaction", async (_event, ctx) => void (await ask("compact", whose(ctx))))
    api.on("after_compaction", async (_event, ctx) => {
      drop(whose(ctx))
      tell(whose(ctx), "compact")
    })
    api.on("agent_end", async (_event, ctx) => void (await ask("stop", whose(ctx))))
    api.on("session_end", async (_event, ctx) => {
      const who = whose(ctx)
      drop(who)
      await ask("end", who)
    })
  },
}
