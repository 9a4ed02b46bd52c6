// Holdfast in OpenCode: tells the model what is remembered, and keeps out of the way when anything fails.
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
