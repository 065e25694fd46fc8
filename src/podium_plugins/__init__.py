"""Plugin families beyond kube-scheduler, with their controllers, custom resources and pages."""
