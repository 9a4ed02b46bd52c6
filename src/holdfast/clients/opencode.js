// Holdfast in OpenCode: shows the model its memory. A failure never disturbs the session.
const TITLE = "You are a title generator" // the start of the prompt of OpenCode's title agent

function textOf(parts) {
  return (parts ?? []).filter((part) => part?.type === "text" && !part.synthetic).map((part) => part.text).join("\n")
}

// Memory for a prompt is an ignored part of the prompt's message. OpenCode sends ignored parts to no model, so the request for
// the session's title does not contain it; `experimental.chat.messages.transform` adds it to the agent's request.
function memoryPart(first, text) {
  return { ...first, id: `${first.id}h`, text, synthetic: true, ignored: true, metadata: { holdfast: true } }
}

function isMemory(part) {
  return part?.type === "text" && part.metadata?.holdfast === true
}

export const Holdfast = async ({ directory, worktree }) => {
  const folder = directory || worktree
  const told = new Map() // by session: the text shown at its start, so that every request contains the same bytes
  let title = TITLE
  const tell = (session, source) => {
    const before = told.get(session) ?? Promise.resolve("")
    const now = Promise.all([before, ask("start", { session_id: session, cwd: folder, source })])
    told.set(session, now.then(([old, text]) => text || old))
  }
  return {
    config: async (config) => {
      title = config?.agent?.title?.prompt || TITLE // a user may have written their own
    },
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
      if (text && first) parts.splice(parts.indexOf(first) + 1, 0, memoryPart(first, text))
    },
    "experimental.chat.messages.transform": async (input, output) => {
      // Replace messages, never change them: the title request is made from the same objects at the same time.
      const messages = output.messages ?? []
      messages.forEach((message, place) => {
        if (!message?.parts?.some(isMemory)) return
        const parts = message.parts.map((part) => (isMemory(part) ? { ...part, ignored: false } : part))
        messages[place] = { ...message, parts }
      })
    },
    "experimental.chat.system.transform": async (input, output) => {
      if (output.system?.[0]?.startsWith(title)) return // the request for a title, which is not the agent's
      const text = input?.sessionID && (await told.get(input.sessionID))
      if (text) output.system.push(text)
    },
    "experimental.session.compacting": async (input) => {
      await ask("compact", { session_id: input?.sessionID, cwd: folder })
    },
  }
}
