import { existsSync } from 'node:fs'
import path from 'node:path'
import { defineConfig } from 'vitepress'

// The site is made from the Markdown files in docs as they are: they read as well where the repository is browsed.
const docs = path.resolve(import.meta.dirname, '../..')

// Where the repository is browsed, such as https://git.example.com/tocsin/blob/main. Without it, a link to a file that
// is no page of the site is the file's path.
const source = process.env.DOCS_SOURCE?.replace(/\/$/, '')

const page = (text: string, link: string) => ({ text, link })

export default defineConfig({
  title: 'Tocsin',
  description: 'One alert and one message for each exchange that matches a rule',
  lang: 'en',
  srcDir: 'pages',
  outDir: 'dist',
  cacheDir: '.vitepress/cache',
  rewrites: { 'decisions/README.md': 'decisions/index.md' },
  lastUpdated: false,
  head: [['link', { rel: 'icon', href: 'data:,' }]],

  markdown: {
    theme: { light: 'github-light', dark: 'github-dark' },
    languageAlias: { mustache: 'handlebars', env: 'ini' },
    // As in GitHub and GitLab, so that a link to a heading works there and here. internal/checks has the same rule.
    anchor: {
      slugify: (heading) =>
        heading
          .trim()
          .toLowerCase()
          .replace(/[^\p{L}\p{N}\p{M}\-_ ]/gu, '')
          .replaceAll(' ', '-'),
    },
    config: (md) => {
      // Pages show {{templates}} of Mustache, which Vue must not take for its own.
      for (const kind of ['text', 'code_inline'] as const) {
        const render = md.renderer.rules[kind]
        md.renderer.rules[kind] = (...all) => (render?.(...all) ?? '').replaceAll('{{', '&#123;&#123;')
      }

      // A link to a file that is no page: where the repository is browsed, or the path alone.
      md.core.ruler.push('files', (state) => {
        for (const block of state.tokens) {
          const links: boolean[] = []
          for (const token of block.children ?? []) {
            if (token.type === 'link_open') {
              const href = token.attrGet('href') ?? ''
              const file = path.resolve(docs, path.dirname(state.env.relativePath ?? ''), decodeURI(href.split('#')[0]))
              // build.mjs makes pages of the site of these.
              const beside = path.relative(path.dirname(docs), file)
              if (beside === 'CONTRIBUTING.md' || beside === 'CHANGELOG.md') {
                const page = path.relative(path.dirname(state.env.relativePath ?? ''), beside.toLowerCase())
                token.attrSet('href', (page.startsWith('.') ? page : `./${page}`) + href.slice((href + '#').indexOf('#')))
                links.push(true)
                continue
              }
              const inside = !path.relative(docs, file).startsWith('..') && /(\.md|\/)$/.test(href.split('#')[0])
              if (/^([a-z]+:|#|\/)/.test(href) || inside) {
                links.push(true)
                continue
              }
              if (!existsSync(file)) {
                throw new Error(`${state.env.relativePath}: the link ${href} leads to no file`)
              }
              links.push(source !== undefined)
              if (source) {
                token.attrSet('href', `${source}/${path.relative(path.dirname(docs), file)}`)
              } else {
                token.type = 'code_open'
                token.tag = 'code'
                token.attrs = [['title', path.relative(path.dirname(docs), file)]]
              }
            } else if (token.type === 'link_close' && !links.pop()) {
              token.type = 'code_close'
              token.tag = 'code'
            }
          }
        }
      })
    },
  },

  themeConfig: {
    search: {
      provider: 'local',
      options: {
        detailedView: true,
        miniSearch: {
          searchOptions: {
            // A short word that is misspelt is another word: lag, log.
            fuzzy: (term: string) => (term.length > 4 ? 0.2 : false),
            // VitePress passes these functions to the browser as text, so they use nothing from outside.
            // The beginning of a page comes before its sections, and guides before records and measurements.
            boostDocument: (id: string, _term: string, stored?: Record<string, unknown>) => {
              const start = (stored?.titles as string[] | undefined)?.length === 0 ? 2.5 : 1
              return /\/(changelog|contributing|decisions\/|performance\/)/.test(id) ? 0.1 * start : start
            },
            // Words that users type for words that the pages use.
            processTerm: (term: string) => {
              const word = term.toLowerCase()
              const others: Record<string, string[]> = {
                k8s: ['kubernetes'], otel: ['opentelemetry'], upgrade: ['update'], mute: ['silence'], email: ['e-mail'],
                dedupe: ['duplicate'], deduplication: ['duplicate'], helm: ['kubernetes'], restore: ['backup'],
              }
              return [word, ...(others[word] ?? [])]
            },
          },
        },
      },
    },
    outline: [2, 3],
    socialLinks: [],
    nav: [
      page('Tutorials', '/tutorials/first-alert'),
      page('How-to guides', '/writing-rules'),
      page('Reference', '/settings'),
      page('Explanation', '/life-of-an-exchange'),
    ],
    sidebar: [
      {
        text: 'Tutorials',
        items: [
          page('Your first alert', '/tutorials/first-alert'),
          page('From OpenTelemetry', '/tutorials/opentelemetry'),
          page('A Slack app, step by step', '/tutorials/slack'),
        ],
      },
      {
        text: 'How-to guides',
        items: [
          page('Write rules', '/writing-rules'),
          page('Rules as code', '/rules-as-code'),
          page('Routing', '/routing'),
          page('Silences', '/silences'),
          page('Move from Alertmanager', '/alertmanager'),
          {
            ...page('Receivers', '/receivers'),
            collapsed: true,
            items: [
              page('Alertmanager', '/receivers/alertmanager'),
              page('Discord', '/receivers/discord'),
              page('E-mail', '/receivers/email'),
              page('GoAlert', '/receivers/goalert'),
              page('Google Chat', '/receivers/google-chat'),
              page('Grafana IRM', '/receivers/grafana-irm'),
              page('incident.io', '/receivers/incident-io'),
              page('Jira', '/receivers/jira'),
              page('Jira Service Management', '/receivers/jsm'),
              page('Mattermost', '/receivers/mattermost'),
              page('Microsoft Teams', '/receivers/teams'),
              page('ntfy', '/receivers/ntfy'),
              page('PagerDuty', '/receivers/pagerduty'),
              page('Pushover', '/receivers/pushover'),
              page('Rootly', '/receivers/rootly'),
              page('ServiceNow', '/receivers/servicenow'),
              page('Splunk On-Call', '/receivers/splunk-on-call'),
              page('Telegram', '/receivers/telegram'),
              page('Twilio SMS', '/receivers/twilio'),
            ],
          },
          page('Connect your table', '/sources'),
          page('Install', '/install'),
          page('Operate', '/operations'),
          page('Control access', '/access'),
          page('When receivers fail', '/delivery'),
          page('Find and raise missing alerts', '/completeness'),
          page('Runbook', '/runbook'),
          page('Plan for scale', '/scale'),
        ],
      },
      {
        text: 'Reference',
        items: [
          page('Settings', '/settings'),
          page('API', '/api'),
          page('Webhooks, payloads and templates', '/webhooks'),
          page('Metrics and traces', '/metrics'),
          page('Measurements', '/performance/results'),
        ],
      },
      {
        text: 'Explanation',
        items: [
          page('The life of an exchange', '/life-of-an-exchange'),
          page('The guarantee', '/guarantee'),
          page('Performance', '/performance'),
          page('Decisions', '/decisions/'),
        ],
      },
      {
        text: 'Project',
        items: [page('Contribute', '/contributing'), page('Changelog', '/changelog')],
      },
    ],
  },
})
