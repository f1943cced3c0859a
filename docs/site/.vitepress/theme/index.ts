import DefaultTheme from 'vitepress/theme'
import Calculator from './Calculator.vue'

export default {
  ...DefaultTheme,
  enhanceApp({ app }) {
    app.component('Calculator', Calculator)
  },
}
