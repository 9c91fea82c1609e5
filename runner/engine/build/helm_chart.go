package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint/rules"
	"helm.sh/helm/v3/pkg/lint/support"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// HelmChart makes a chart directory with all its dependencies in it, so that a
// plan needs nothing but the artifact.
func HelmChart(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	tree, err := directory(ctx, j)
	if err != nil {
		return jobspec.Result{}, err
	}
	wrong := func(err error) error {
		return wrong(j, err, "`helm lint` there says more")
	}
	if err := checkChartfile(tree.to); err != nil {
		return jobspec.Result{}, wrong(err)
	}
	if err := packDependencies(ctx, j, tree); err != nil {
		return jobspec.Result{}, err
	}
	packed, err := loader.LoadDir(tree.to)
	if err != nil {
		return jobspec.Result{}, wrong(err)
	}
	if err := checkChart(tree.to, packed); err != nil {
		return jobspec.Result{}, wrong(err)
	}
	tree.log(j)
	if packed.Metadata.Deprecated {
		j.Logf("note: chart %s says that it is deprecated", packed.Name())
	}
	j.Logf("chart %s %s of %d files, %d bytes, %d dependencies", packed.Name(), packed.Metadata.Version,
		tree.files, tree.bytes, len(packed.Dependencies()))
	return jobspec.Result{}, nil
}

// checkChartfile checks Chart.yaml alone, by Helm's own rules.
func checkChartfile(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, chartutil.ChartfileName)); err != nil {
		return fmt.Errorf("there is no %s in it, so it is no chart", chartutil.ChartfileName)
	}
	linter := support.Linter{ChartDir: dir}
	rules.Chartfile(&linter)
	return lintErrors(linter)
}

// checkChart checks a chart that is complete. Templates are only parsed: what
// they need to be rendered is not known before an install.
func checkChart(dir string, c *chart.Chart) error {
	if c.Metadata.Type == "library" {
		return fmt.Errorf("chart %s is a library, which cannot be installed by itself", c.Name())
	}
	linter := support.Linter{ChartDir: dir}
	rules.Dependencies(&linter)
	if err := lintErrors(linter); err != nil {
		return err
	}
	values, err := chartutil.ToRenderValuesWithSchemaValidation(c, nil, chartutil.ReleaseOptions{Name: "lint", Namespace: "lint"}, nil, true)
	if err != nil {
		return err
	}
	_, err = engine.Engine{LintMode: true}.Render(c, values)
	if err != nil && strings.HasPrefix(err.Error(), "parse error") {
		return err
	}
	return nil
}

func lintErrors(linter support.Linter) error {
	for _, m := range linter.Messages {
		if m.Severity >= support.ErrorSev {
			if at := filepath.Base(m.Path); m.Path != "" && !filepath.IsAbs(m.Path) {
				return fmt.Errorf("%s: %w", at, m.Err)
			}
			return m.Err
		}
	}
	return nil
}
