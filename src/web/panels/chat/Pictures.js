// Pictures of the next message: chosen, pasted or dropped, as `data:` URLs.
import { byId, h } from "../../page/Elements.js"

/** @param {File} file */
const dataUrl = (file) =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(file)
  })

/** @param {string} url */
export const picture = (url) => {
  const image = h("img", { alt: "attached picture" })
  image.src = url
  return image
}

/**
 * @param {{ sees: () => boolean, model: () => string, refuse: (sentence: string) => void, isShown: () => boolean }} host
 */
export const makePictures = ({ isShown, model, refuse, sees }) => {
  const place = byId("chat-pictures", HTMLElement)
  const attach = byId("chat-attach", HTMLButtonElement)
  const file = byId("chat-file", HTMLInputElement)
  const text = byId("chat-text", HTMLTextAreaElement)
  /** @type {Array<string>} */
  let urls = []

  const show = () => {
    attach.hidden = !sees()
    place.hidden = urls.length === 0
    place.replaceChildren(
      ...urls.map((url, at) => {
        const button = h("button", {
          type: "button",
          title: "Remove",
          "aria-label": `Remove picture ${at + 1}`,
        })
        button.append(picture(url))
        button.addEventListener("click", () => {
          urls.splice(at, 1)
          show()
        })
        return button
      }),
    )
  }
  /** @param {Iterable<File>} files */
  const add = async (files) => {
    if (!sees()) return refuse(`${model()} takes no pictures: choose a model that does in the settings.`)
    for (const one of files) {
      try {
        urls.push(await dataUrl(one))
      } catch {
        refuse(`${one.name} cannot be read: choose the picture again.`)
      }
    }
    show()
  }
  attach.addEventListener("click", () => file.click())
  file.addEventListener("change", async () => {
    await add(file.files ?? [])
    file.value = ""
  })
  text.addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])]
    if (files.length === 0) return
    event.preventDefault()
    add(files)
  })
  const holdsFiles = (/** @type {DragEvent} */ event) =>
    isShown() && (event.dataTransfer?.types.includes("Files") ?? false)
  addEventListener("dragover", (event) => {
    if (holdsFiles(event)) event.preventDefault()
  })
  addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return
    event.preventDefault()
    add(event.dataTransfer?.files ?? [])
  })
  return {
    show,
    /** Takes the pictures for a message. */
    take: () => {
      const taken = urls
      urls = []
      show()
      return taken
    },
    /** @param {ReadonlyArray<string>} taken of a message that could not be sent */
    putBack: (taken) => {
      urls = [...taken]
      show()
    },
  }
}
